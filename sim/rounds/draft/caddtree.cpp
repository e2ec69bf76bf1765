#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/marginal_tree.h"

#include <memory>

namespace specsim::draft {

DrafterEntry caddtree_drafter() {
  struct P {
    int block_size = 16;
    int nodes = 64;
    int steps = 1;
    double draft_time = 0.1;
    double row_time = 0.01;
  };
  static const config::Fields<P> fields = {
      {"block_size", &P::block_size, "positions of a block; the first is the text's last token",
       config::between(2, kMaxDraftLength + 1)},
      {"nodes", &P::nodes, "maximum number of tokens of the tree", config::between(1, 256)},
      {"steps", &P::steps, "denoising passes over the block", config::between(1, 64)},
      {"draft_time", &P::draft_time, "time of drafting a block, in passes of the target over one token", config::at_least(0)},
      {"row_time", &P::row_time, "time that verifying one more token takes, in the same unit", config::above(0, 1e3)}};
  return {
      {"caddtree",
       "CaDDTree is DDTree with a number of nodes that depends on their cost: it adds nodes while they raise the expected tokens "
       "per time",
       "He et al. (CaDDTree), arXiv 2606.01813", fields,
       "Nodes are added as in ddtree, best first, while (1 + their probabilities) / (1 + draft_time + row_time times their "
       "number) grows. Each node is worth less than the one before, so the first that does not pay ends the tree. The paper's "
       "time of verification may be any convex function; here it is a straight line with these parameters, since a drafter "
       "does not see the cost section.",
       "nodes: 3, block_size: 3"},
      [](const config::Arguments& arguments, Diagnostics&) {
        const P params = fields.read(arguments);
        return std::make_shared<MarginalTree>(
            params.block_size - 1, params.steps,
            MarginalTree::Budget{.nodes = params.nodes, .draft_time = params.draft_time, .row_time = params.row_time});
      }};
}

}  // namespace specsim::draft
