#include "sim/experiments/judge/budget_trees.h"
#include "sim/experiments/judge/method.h"
#include "sim/rounds/theory/budget_trees.h"

namespace specsim::judge {

TheoryEntry spec_exec_theory() {
  return {{"spec_exec",
           "the likeliest paths of the draft for a budget of nodes, by every context that a round can start from",
           "Svirschevski et al. (SpecExec), arXiv 2406.02532",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"spec_exec"},
          [](const spec::Cell& cell) -> Coverage {
            if (whole_argument(cell, "beams") < whole_argument(cell, "budget"))
              return {nullptr,
                      "with fewer beams than budget the tree depends on the order of the search, and theory covers only the "
                      "likeliest "
                      "paths"};
            return enumerate_budget_trees(BlockRounds(cell), [&cell](const theory::Automaton& own, int state) {
              return theory::likeliest_paths(own, state, whole_argument(cell, "budget"), whole_argument(cell, "max_depth"),
                                             whole_argument(cell, "width"), drafter_arguments(cell).number("decay"));
            });
          }};
}

}  // namespace specsim::judge
