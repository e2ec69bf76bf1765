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
  // All heads run once, together with the target: the cost section's draft model is the heads together.
  [[nodiscard]] BlockWork work(int nodes) const override { return {{1.0}, 1.0 + nodes}; }
};

}  // namespace

DrafterEntry medusa_drafter() {
  return {{"medusa", "extra heads on the target guess the next positions at once, each without seeing the others",
           "Cai et al. (Medusa), arXiv 2401.10774", heads_fields()},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            std::optional<tokens::Tree> tree = heads_tree(arguments, "medusa", nullptr, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<Heads>(std::move(*tree)));
          }};
}

}  // namespace specsim::draft
