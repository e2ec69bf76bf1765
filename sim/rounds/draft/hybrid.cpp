#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/draft/text_match.h"

#include <array>
#include <utility>

namespace specsim::draft {

namespace {

// A round's draft is the text's where it is longer than the model's would be, so that the number of nodes tells which it was, and
// what it took.
class Hybrid final : public BlockDrafter {
 public:
  Hybrid(int model_length, SuffixScores scores) : model_length_(model_length), own_(std::move(scores)) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = std::max(model_length, own_.draft_length);
    shape_.nodes = shape_.draft_length;
    shape_.ranks = 1;
    shape_.reads_text = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(Sight& sight, Memory* /*memory*/, ChosenBlock& block) const override {
    const Continuation text = suffix_continuation(sight, own_);
    if (text.score >= model_length_ && text.path.size() > static_cast<std::size_t>(model_length_))
      return add_paths(block, {text.path});
    int node = 0;
    for (int i = 0; i < model_length_; ++i) {
      sight.prepare(block, std::array{node});
      const std::span<const Ranked> likeliest = sight.likeliest(block, node);
      if (likeliest.empty() || !(likeliest[0].probability > 0.0)) return;
      node = block.add(node, likeliest[0].token);
    }
  }

  [[nodiscard]] Work work(int nodes) const override {
    const int passes = nodes > model_length_ ? 0 : nodes;
    return {std::vector<double>(static_cast<std::size_t>(passes), 1.0), 1.0 + nodes};
  }

 private:
  Shape shape_;
  int model_length_;
  SuffixScores own_;
};

}  // namespace

DrafterEntry hybrid_drafter() {
  return {
      {"hybrid",
       "copies the text where that promises more than a draft model would propose, and asks the model elsewhere",
       "snowflakedb/ArcticInference, arctic_inference/vllm/model_runner.py (min_score: drafter.model.n_predict); Oliaro et al. "
       "(SuffixDecoding), arXiv 2411.04975; Hu et al. (SAM Decoding with EAGLE), arXiv 2411.10666, has the same form",
       {{"draft_length",
         config::Type::integer,
         "3",
         "tokens that the model drafts, its argmax each (n_predict)",
         config::between(1, kMaxDraftLength),
         {}},
        {"text_length", config::Type::integer, "24", "tokens that are copied at most", config::between(1, kMaxDraftLength), {}},
        {"max_tree_depth",
         config::Type::integer,
         "24",
         "length of the end that is looked for and of the copy together, at most",
         config::between(2, 256),
         {}},
        {"factor", config::Type::number, "1", "copies factor times the match's length at most", config::between(0, 64), {}},
        {"least",
         config::Type::number,
         "0.1",
         "a copy ends where the path's share of the matches falls below",
         config::between(0, 1),
         {}}},
       "suffix_decoding scores the text's continuations; the best is drafted where its score, the tokens that it promises, is at "
       "least draft_length and it has more tokens than that. Else the model drafts its chain. The program takes a copy of "
       "exactly draft_length tokens as well, which saves the model's passes and drafts as much. It pays on text that repeats "
       "itself in places: agents, edits, code. text_length and max_tree_depth of 24 are those of vLLM's suffix decoding; the "
       "program, which alone has the hybrid, sets 64 for both (suffix_cache_max_depth). Other drafters out of the text go before "
       "a "
       "model, or before one another, in in_turn, which takes the first draft that there is, as llama.cpp does.",
       "draft_length: 1, text_length: 3"},
      [](const config::Arguments& arguments, Diagnostics&) {
        SuffixScores scores{static_cast<int>(arguments.integer("text_length")),
                            static_cast<int>(arguments.integer("max_tree_depth")),
                            arguments.number("factor"),
                            0.0,
                            arguments.number("least"),
                            {}};
        const auto model_length = static_cast<int>(arguments.integer("draft_length"));
        return std::make_shared<Hybrid>(model_length, std::move(scores));
      }};
}

}  // namespace specsim::draft
