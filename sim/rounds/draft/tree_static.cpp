#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/tree_config.h"
#include "sim/rounds/draft/tree_drafter.h"

#include <fmt/format.h>

namespace specsim::draft {

DrafterEntry tree_static_drafter() {
  struct P {
    TreeShape shape;
    tokens::Siblings siblings = tokens::Siblings::independent;
  };
  static const config::Fields<P> fields = {
      {&P::shape, tree_shape_fields()},
      siblings_field(&P::siblings),
  };
  return {{"tree_static", "a token tree of one shape, the same every round",
           "Miao et al. (SpecInfer), arXiv 2305.09781; Cai et al. (Medusa), arXiv 2401.10774", fields,
           "Each level of the tree is one pass of the draft model, over the nodes of the level above that have children; the "
           "target verifies all nodes and the text's last token in one pass. "
           "With siblings: top_k, tokens to which the draft gives probability 0 are not drafted: such a tree can "
           "have fewer nodes than its shape. It pays at small batch: five sequences of eight tokens with a draft "
           "of 68M made Llama-2-7B 2.1 to 3.8 times as fast (SpecInfer's tree as Sequoia's authors measured it, "
           "A100, batch 1). It does not in large ones: simulated, the best tree is a quarter faster than the "
           "best chain at batch 1 and a tenth slower at 32 (docs/results/time_and_methods.md)."},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            const std::optional<tokens::Tree> tree = tree_of(arguments, params.shape, params.siblings, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<TreeDrafter>(*tree, params.siblings));
          },
          true};
}

}  // namespace specsim::draft
