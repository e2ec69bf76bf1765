// A published faulty rule, and the distribution that it emits.
#include "sim/experiments/judge/position_rounds.h"

namespace specsim::judge {

TheoryEntry soft_argmax_theory() {
  return {{"soft_argmax", "an argmax draft accepted with min(1, target / draft model) of it", "", {}, ""},
          {"soft_argmax"},
          {},
          [](const spec::Cell& cell) {
            return follow_positions(cell, [](const verify::PositionDistributions& distributions) {
              return theory::judge_soft_argmax(distributions.target, distributions.draft_model);
            });
          }};
}

}  // namespace specsim::judge
