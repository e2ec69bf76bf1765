#include "sim/rounds/draft/heads.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <utility>

namespace specsim::draft {

namespace {

// Heads on the target itself: every position is guessed from the text before the block.
class Heads final : public TreeDrafter {
 public:
  explicit Heads(tokens::Tree tree) : TreeDrafter(std::move(tree), tokens::Siblings::point_mass) {
    shape_.from_root = true;
    shape_.on_target_state = true;
  }
  // All heads run once, beside the target: the cost section's draft model is the heads together.
  [[nodiscard]] Work work(int nodes) const override { return {{1.0}, 1.0 + nodes}; }
};

}  // namespace

DrafterEntry medusa_drafter() {
  return {{"medusa", "heads that guess each position on their own, from the text before the block",
           "Cai et al. (Medusa), arXiv 2401.10774", heads_fields(),
           "Children at depth d are the likeliest tokens of the draft's distribution for depth d in the context before the block "
           "(context by_depth: one distribution for each head), the same under every parent. No sequential cost: the heads "
           "together are one pass of the cost section's draft model. "
           "It pays at small batch where there is no draft model: 2.18 times plain decoding for Vicuna-7B with "
           "heads alone, 2.83 with the model trained along with them (its authors, batch 1); 1.44 on an RTX 3090 "
           "and 1.71 on an A100 on Spec-Bench's leaderboard, where EAGLE and Hydra gain more. Its authors saw "
           "the gain shrink above batch 32."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            std::optional<tokens::Tree> tree = heads_tree(arguments, "medusa", nullptr, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<Heads>(std::move(*tree)));
          }};
}

}  // namespace specsim::draft
