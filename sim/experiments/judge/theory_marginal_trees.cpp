#include "sim/experiments/judge/budget_trees.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/budget_trees.h"

namespace specsim::judge {

TheoryEntry marginal_trees_theory() {
  return {{"marginal_trees",
           "the likeliest paths by the product of the block's distributions, by every context that a round can start from",
           "Ringel and Romano (DDTree), arXiv 2604.12989; He et al. (CaDDTree), arXiv 2606.01813; Hu et al. "
           "(JetSpec), arXiv 2606.18394",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ddtree", "caddtree", "jetspec"},
          [](const spec::Cell& cell) {
            return enumerate_budget_trees(BlockRounds(cell), [&cell](const theory::Automaton& own, int state) {
              const config::Arguments& chosen = drafter_arguments(cell);
              const bool by_cost = drafter_name(cell) == "caddtree";
              const bool families = drafter_name(cell) == "jetspec";
              return theory::marginal_tree(
                  own, state,
                  {.positions = families ? whole_argument(cell, "depth") : whole_argument(cell, "block_size") - 1,
                   .nodes = whole_argument(cell, "nodes"),
                   .width = by_cost ? 0 : whole_argument(cell, "width"),
                   .draft_time = by_cost ? chosen.number("draft_time") : 0.0,
                   .row_time = by_cost ? chosen.number("row_time") : 0.0,
                   .families = families});
            });
          }};
}

}  // namespace specsim::judge
