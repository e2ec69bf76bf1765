// The token verifier with a reduced draft probability.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/lossy.h"

namespace specsim::judge {

TheoryEntry lenience_theory() {
  return {{"lenience",
           "sum min(target / lenience, draft) accepted, (target - draft)+ after a rejection",
           "Leviathan et al., arXiv 2211.17192, appendix A.5",
           {},
           ""},
          {"lenience"},
          {},
          [](const spec::Cell& cell) {
            const double lenience = verifier_arguments(cell).number("lenience");
            return walk_admitting(BlockRounds(cell), [lenience](const verify::PositionDistributions& distributions) {
              return theory::lenience_acceptance(distributions.target, distributions.drafted, lenience);
            });
          }};
}

}  // namespace specsim::judge
