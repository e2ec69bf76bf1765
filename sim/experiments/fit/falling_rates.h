// Acceptance that falls with depth, the same way in every state: logit alpha(state, depth) = level(state) + slope log(1 + depth).
// Recorded drafts fall fastest over the first positions and level off; one slope can be told from few rounds and says how longer
// drafts go on, where a rate for each depth says nothing of those that were not recorded.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::fit {

struct FallingRates {
  std::vector<double> level;  // [state]
  double slope = 0.0;
  [[nodiscard]] double alpha(std::size_t state, std::size_t depth) const;
};

// Expected counts of a step of expectation and maximisation, [state][depth].
struct OutcomeCounts {
  std::vector<std::vector<double>> judged;
  std::vector<std::vector<double>> accepted;
};

// Moves `rates` towards the maximum of the counts' likelihood by a few of Newton's steps, each halved until it gains.
void improve_rates(FallingRates& rates, const OutcomeCounts& counts);

}  // namespace specsim::fit
