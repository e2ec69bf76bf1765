#include "sim/experiments/judge/budget_trees.h"
#include "sim/rounds/theory/budget_trees.h"

namespace specsim::judge {

TheoryEntry redrafter_theory() {
  return {{"redrafter",
           "the likeliest beams of the draft, level by level, by every context that a round can start from",
           "Zhang et al. (Recurrent Drafter), arXiv 2403.09919",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"redrafter"},
          [](const spec::Cell& cell) {
            return enumerate_budget_trees(BlockRounds(cell), [&cell](const theory::Automaton& own, int state) {
              return theory::beam_tree(own, state, whole_argument(cell, "beams"), whole_argument(cell, "draft_length"));
            });
          }};
}

}  // namespace specsim::judge
