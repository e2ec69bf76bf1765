// K-SEQ: siblings judged against the target divided by one factor.
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/multi_draft.h"

namespace specsim::judge {

TheoryEntry kseq_theory() {
  return {{"kseq",
           "siblings accepted with min(1, target / (factor draft)), the factor by the number of siblings",
           "Sun et al. (SpecTr), arXiv 2310.15141",
           {},
           ""},
          {"kseq"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (!figures_of(rounds).even)
              return {nullptr, "its factor depends on the number of siblings, in which nodes of one depth differ"};
            return walk(std::move(rounds), {[](const verify::PositionDistributions& distributions, int children) {
                          return theory::judge_kseq(distributions.target, distributions.drafted, children).by_token;
                        }});
          }};
}

}  // namespace specsim::judge
