// Rejection sampling: token by token on a chain, and one after the other for siblings drawn with replacement.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/position_rounds.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/multi_draft.h"

namespace specsim::judge {

TheoryEntry recursive_theory() {
  return {{"recursive",
           "rejection sampling: alpha = sum min(target, draft), of siblings against what the rejections before them left",
           "Leviathan et al., arXiv 2211.17192; Miao et al., arXiv 2305.09781",
           {},
           ""},
          {"token", "multi_draft_recursive"},
          {},
          [](const spec::Cell& cell) {
            if (judges_positions(cell))
              return follow_positions(cell, [](const verify::PositionDistributions& distributions) {
                return theory::judge_token(distributions.target, distributions.drafted);
              });
            return walk(BlockRounds(cell), {[](const verify::PositionDistributions& distributions, int children) {
                          return theory::judge_recursive(distributions.target, distributions.drafted, children).by_token;
                        }});
          }};
}

}  // namespace specsim::judge
