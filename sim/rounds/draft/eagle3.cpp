#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/tree_config.h"
#include "sim/rounds/draft/tree_dynamic.h"

#include <algorithm>
#include <memory>

namespace specsim::draft {

DrafterEntry eagle3_drafter() {
  struct P {
    int depth = 8;
    int width = 10;
    int nodes = 59;
  };
  static const config::Fields<P> fields = {
      {"depth", &P::depth, "levels, one draft pass each; the program's depth of 7 does not count the first",
       config::between(1, kMaxDraftLength)},
      {"width", &P::width, "nodes of a level that are expanded, and children of each (top_k)", config::between(1, 64)},
      {"nodes", &P::nodes, "kept for verification; the program's total_token of 60 counts the text's last token",
       config::between(1, kMaxNodes)},
  };
  return {{"eagle3", "EAGLE-3 is a head on features of several target layers, trained on its own guesses",
           "Li et al. (EAGLE-3), arXiv 2503.01840; SafeAILab/EAGLE, eagle/model/ea_model.py (from_pretrained), "
           "eagle/model/cnets.py (topK_genrate)",
           fields},
          [](const config::Arguments& arguments, Diagnostics&) {
            const P params = fields.read(arguments);
            // A chain, so that policies can shorten it, as servers do.
            if (params.width == 1) return Draft(Chain{std::min(params.depth, params.nodes), true});
            return Draft(std::make_shared<DynamicTree>(params.depth, params.width, params.nodes));
          }};
}

}  // namespace specsim::draft
