#include "sim/experiments/judge/budget_trees.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/budget_trees.h"

namespace specsim::judge {

TheoryEntry opt_tree_theory() {
  return {{"opt_tree",
           "the likeliest nodes of the draft's likeliest layers, until a layer promises no gain, by every context that a round "
           "can start from",
           "Wang et al. (OPT-Tree), arXiv 2406.17276",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"opt_tree"},
          [](const spec::Cell& cell) {
            return enumerate_budget_trees(BlockRounds(cell), [&cell](const theory::Automaton& own, int state) {
              return theory::opt_tree(own, state, whole_argument(cell, "nodes"), drafter_arguments(cell).number("threshold"),
                                      whole_argument(cell, "max_depth") - 1);
            });
          }};
}

}  // namespace specsim::judge
