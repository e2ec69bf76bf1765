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
  return {{"tree_static", "a token tree of one fixed shape per round: several candidates at each position instead of one",
           "Miao et al. (SpecInfer), arXiv 2305.09781; Cai et al. (Medusa), arXiv 2401.10774", fields},
          [](const config::Arguments& arguments, Diagnostics& diagnostics) {
            const P params = fields.read(arguments);
            const std::optional<tokens::Tree> tree = tree_of(arguments, params.shape, params.siblings, diagnostics);
            if (!tree) return Draft();
            return Draft(std::make_shared<TreeDrafter>(*tree, params.siblings));
          },
          true};
}

}  // namespace specsim::draft
