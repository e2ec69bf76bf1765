#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <array>
#include <utility>

namespace specsim::draft {

namespace {

// A round uses the draft from the text if it is longer than the model's draft would be. So the number of nodes shows which of the
// two was used, and its cost.
class Hybrid final : public BlockDrafter {
 public:
  // The longest copy is `draft_length` of SuffixScores; the length of the model's draft is `model_length`.
  struct Params : SuffixScores {
    int model_length = 3;
  };
  explicit Hybrid(Params params) : params_(std::move(params)) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = std::max(params_.model_length, params_.draft_length);
    shape_.nodes = shape_.draft_length;
    shape_.ranks = 1;
    shape_.reads_text = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    const Continuation text = suffix_continuation(input, params_);
    if (text.score >= params_.model_length && text.path.size() > static_cast<std::size_t>(params_.model_length))
      return add_paths(block, {text.path});
    int node = 0;
    for (int i = 0; i < params_.model_length; ++i) {
      input.prepare(block, std::array{node});
      const std::span<const Ranked> likeliest = input.likeliest(block, node);
      if (likeliest.empty() || !(likeliest[0].probability > 0.0)) return;
      node = block.add(node, likeliest[0].token);
    }
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    const int passes = nodes > params_.model_length ? 0 : nodes;
    return {std::vector<double>(static_cast<std::size_t>(passes), 1.0), 1.0 + nodes};
  }

 private:
  Shape shape_;
  Params params_;
};

}  // namespace

DrafterEntry hybrid_drafter() {
  using P = Hybrid::Params;
  static const config::Fields<P> fields = {
      {"draft_length", &P::model_length, "tokens that the model drafts, each its argmax (n_predict)",
       config::between(1, kMaxDraftLength)},
      {"text_length", &P::draft_length, "maximum number of tokens that are copied", config::between(1, kMaxDraftLength)},
      {"max_tree_depth", &P::depth, "longest suffix that is searched for and its copy together, in tokens",
       config::between(2, 256)},
      {"factor", &P::factor, "copies at most factor times the match's length", config::between(0, 64)},
      {"least", &P::least, "a copy ends where the path's share of the matches falls below", config::between(0, 1)},
  };
  return {{"hybrid",
           "copies from the text if a copy promises more tokens than the draft model would propose, and otherwise uses "
           "the model",
           "snowflakedb/ArcticInference, arctic_inference/vllm/model_runner.py (min_score: drafter.model.n_predict); Oliaro et "
           "al. (SuffixDecoding), arXiv 2411.04975; Hu et al. (SAM Decoding with EAGLE), arXiv 2411.10666, has the same form",
           fields, "", "draft_length: 1, text_length: 3"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<Hybrid>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
