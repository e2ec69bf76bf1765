// Rejection sampling of siblings drawn without replacement.
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/multi_draft.h"

namespace specsim::judge {

TheoryEntry without_replacement_theory() {
  return {{"without_replacement",
           "rejection sampling of siblings drawn without replacement, by every ordered draw",
           "Chen et al. (Sequoia), arXiv 2402.12374",
           {},
           ""},
          {"without_replacement"},
          {},
          [](const spec::Cell& cell) {
            return walk(
                BlockRounds(cell), {[](const verify::PositionDistributions& distributions, int children) {
                  // A chain has no siblings that could repeat each other.
                  if (children == 1) return theory::judge_recursive(distributions.target, distributions.drafted, 1).by_token;
                  return theory::judge_without_replacement(distributions.target, distributions.drafted, children).by_token;
                }});
          }};
}

}  // namespace specsim::judge
