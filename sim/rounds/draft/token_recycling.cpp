#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/recycled.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <utility>

namespace specsim::draft {

namespace {

class TokenRecycling final : public BlockDrafter {
 public:
  struct Params {
    TreeShape shape;
    int kept = 8;
  };
  TokenRecycling(tokens::Tree tree, int kept) : tree_(std::move(tree)) {
    shape_.siblings = tokens::Siblings::point_mass;
    shape_.draft_length = tree_.height();
    shape_.nodes = tree_.drafted();
    shape_.target_ranks = kept;
    shape_.reads_text = true;
    shape_.looks_behind = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] std::unique_ptr<Memory> start() const override { return std::make_unique<RecycledMemory>(); }

  void choose(Sight& sight, Memory* memory, ChosenBlock& block) const override {
    auto& own = static_cast<RecycledMemory&>(*memory);
    if (!sight.text().empty()) recycled_tree(tree_, own, sight.text().back(), block);
    recycle(sight, block, own);
  }

  [[nodiscard]] Work work(int nodes) const override { return {{}, 1.0 + nodes}; }

 private:
  Shape shape_;
  tokens::Tree tree_;
};

}  // namespace

DrafterEntry token_recycling_drafter() {
  using P = TokenRecycling::Params;
  static const config::Fields<P> fields = {
      {&P::shape, tree_shape_fields()},
      {"kept", &P::kept, "likeliest tokens of the target, kept behind each token (output_id_topk)", config::between(1, 64)},
  };
  return {
      {"token_recycling",
       "candidates that earlier passes of the target threw away: behind each token, what was likeliest there last time",
       "Luo et al. (Token Recycling), arXiv 2408.08696; Luowaterbi/TokenRecycling, evaluation/inference_recycling.py, "
       "model/recycling/tree_template_.py, commit 1b4c05c",
       fields,
       "No draft model. Every pass of the target says what is likeliest behind each token that it verifies, accepted or not; "
       "the kept likeliest stand behind that token until it is verified again, wherever that is, and a tree of their ranks is "
       "drafted behind the text's last token. Without branching, paths or parents the tree is the program's: 80 tokens, 6 "
       "deep. Each sequence begins with nothing kept (the program keeps its table from request to request, of zeros at the "
       "start), and the prompt's pass adds nothing, as in the program. Of one token twice in a tree the later one is kept, "
       "which the program leaves to the GPU. It pays on any text a little, since a token's followers repeat themselves, and "
       "costs the verification of its tree: batch 1, targets bound by their weights. "
       "On Spec-Bench's leaderboard it is 2.22 times plain decoding on an A100, where a round took 1.23 "
       "plain passes, and 1.40 on an RTX 3090, where it took 1.95 (Vicuna-7B)."},
      [](const config::Arguments& arguments, Diagnostics& diagnostics) {
        const P params = fields.read(arguments);
        tokens::Tree tree;
        if (arguments.has("branching") || arguments.has("paths") || arguments.has("parents")) {
          const std::optional<tokens::Tree> given = tree_of(arguments, params.shape, tokens::Siblings::point_mass, diagnostics);
          if (!given) return Draft();
          tree = *given;
        } else {
          tree = recycling_tree();
        }
        return Draft(std::make_shared<TokenRecycling>(std::move(tree), params.kept));
      }};
}

}  // namespace specsim::draft
