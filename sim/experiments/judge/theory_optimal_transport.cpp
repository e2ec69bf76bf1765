// The optimal rule for siblings drawn with replacement: its acceptance, by max-flow/min-cut.
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/multi_draft.h"

#include "sim/foundation/base/index.h"

namespace specsim::judge {

TheoryEntry optimal_transport_theory() {
  return {{"optimal_transport",
           "P(some sibling is accepted) = 1 + min over sets H of (target(H) - draft(H)^siblings)",
           "Sun et al. (SpecTr), arXiv 2310.15141",
           {},
           ""},
          {"optimal_transport"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (!figures_of(rounds).uniform)
              return {nullptr, "several optimal couplings exist, and they differ in the accepted sibling"};
            if (rounds.stops != nullptr)
              return {nullptr,
                      "several optimal couplings exist and differ in the accepted token, on which the end of drafting depends"};
            if (rounds.shape->kind == families::ContextShape::Kind::markov)
              return {nullptr, "several optimal couplings exist and differ in the accepted token, on which contexts depend"};
            NodeTheory rule = {[](const verify::PositionDistributions& distributions, int children) {
              std::vector<std::vector<double>> by_rank(index_of(children), {0.0});
              by_rank[0][0] = theory::optimal_acceptance(distributions.target, distributions.drafted, children);
              return by_rank;
            }};
            rule.siblings_alike = true;
            return walk(std::move(rounds), std::move(rule));
          }};
}

}  // namespace specsim::judge
