#include "sim/base/token.h"
#include "sim/draft/tree_config.h"
#include "sim/draft/tree_drafter.h"

#include <fmt/format.h>

namespace specsim::draft {

DrafterEntry tree_static_drafter() {
  return {{"tree_static", "a token tree of one shape, the same every round",
           "Miao et al. (SpecInfer), arXiv 2305.09781; Cai et al. (Medusa), arXiv 2401.10774",
           shape_parameters({siblings_parameter()}),
           "Each level of the tree is one pass of the draft model, over the nodes of the level above that have children; the "
           "target verifies all nodes and the text's last token in one pass."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const tokens::Siblings siblings = siblings_of(arguments);
            const std::optional<tokens::Tree> tree = tree_of(arguments, siblings, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<TreeDrafter>(*tree, siblings));
          },
          true};
}

}  // namespace specsim::draft
