#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/marginal_tree.h"

#include <memory>

namespace specsim::draft {

DrafterEntry caddtree_drafter() {
  return {
      {"caddtree",
       "CaDDTree is DDTree with a number of nodes that depends on their cost: it adds nodes while they raise the expected tokens "
       "per time",
       "He et al. (CaDDTree), arXiv 2606.01813",
       {{"block_size",
         config::Type::integer,
         "16",
         "positions of a block; the first is the text's last token",
         config::between(2, kMaxDraftLength + 1),
         {}},
        {"nodes", config::Type::integer, "64", "maximum number of tokens of the tree", config::between(1, 256), {}},
        {"steps", config::Type::integer, "1", "denoising passes over the block", config::between(1, 64), {}},
        {"draft_time",
         config::Type::number,
         "0.1",
         "time of drafting a block, in passes of the target over one token",
         config::at_least(0),
         {}},
        {"row_time",
         config::Type::number,
         "0.01",
         "time that verifying one more token takes, in the same unit",
         config::Interval{0, 1e3, true, false},
         {}}},
       "Nodes are added as in ddtree, best first, while (1 + their probabilities) / (1 + draft_time + row_time times their "
       "number) grows. Each node is worth less than the one before, so the first that does not pay ends the tree. The paper's "
       "time of verification may be any convex function; here it is a straight line with these parameters, since a drafter "
       "does not see the cost section.",
       "nodes: 3, block_size: 3"},
      [](const config::Arguments& arguments, Diagnostics&) {
        return std::make_shared<MarginalTree>(static_cast<int>(arguments.integer("block_size")) - 1,
                                              static_cast<int>(arguments.integer("steps")),
                                              MarginalTree::Budget{.nodes = static_cast<int>(arguments.integer("nodes")),
                                                                   .draft_time = arguments.number("draft_time"),
                                                                   .row_time = arguments.number("row_time")});
      }};
}

}  // namespace specsim::draft
