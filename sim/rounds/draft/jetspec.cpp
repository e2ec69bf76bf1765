#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/marginal_tree.h"

#include <memory>

namespace specsim::draft {

DrafterEntry jetspec_drafter() {
  struct P {
    int depth = 20;
    int width = 7;
    int nodes = 127;
  };
  static const config::Fields<P> fields = {
      {"depth", &P::depth, "positions that the head predicts in its pass", config::between(1, kMaxDraftLength)},
      {"width", &P::width, "children of a node: the likeliest tokens of the next depth, the same for every node of a depth",
       config::between(1, 64)},
      {"nodes", &P::nodes, "tokens of the tree (JetSpec's budget without the root)", config::between(1, 256)},
  };
  return {
      {"jetspec",
       "JetSpec makes a tree from one pass of a causal head: the likeliest node gets all its children, until the budget is spent",
       "Hu et al. (JetSpec), arXiv 2606.18394; hao-ai-lab/JetSpec, jetspec/tree/baselines/accum_logp.py, commit 2c7b3fa", fields,
       "", "nodes: 3, depth: 2, width: 2"},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<MarginalTree>(
            params.depth, 1, MarginalTree::Budget{.nodes = params.nodes, .width = params.width, .families = true});
      }};
}

}  // namespace specsim::draft
