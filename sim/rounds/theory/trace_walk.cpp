#include "sim/rounds/theory/trace_walk.h"

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cmath>

namespace specsim::theory {

std::vector<RoundDistribution> trace_distributions(std::span<const double> alpha, int draft_length) {
  std::vector<RoundDistribution> distributions;
  std::vector<double> window(index_of(draft_length));
  for (std::size_t at = 0; at < alpha.size(); ++at) {
    for (std::size_t j = 0; j < window.size(); ++j) window[j] = alpha[(at + j) % alpha.size()];
    distributions.push_back(by_position(window));
  }
  return distributions;
}

double RecordTotals::tokens_per_round_standard_error(double requests) const {
  const double mean = tokens_per_round();
  // The mean of emitted - mean rounds is 0.
  const double variance = emitted_squared - 2.0 * mean * rounds_emitted + mean * mean * rounds_squared;
  return std::sqrt(std::max(variance, 0.0) / requests) / rounds;
}

RecordTotals record_totals(std::span<const RoundDistribution> distributions, std::span<const std::uint32_t> starts,
                           int draft_length) {
  RecordTotals mean;
  const double share = 1.0 / static_cast<double>(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t first = starts[i];
    const std::size_t size = (i + 1 < starts.size() ? starts[i + 1] : distributions.size()) - first;
    std::vector<RecordTotals> left(size + 1);  // [position]: totals of the rest of a request that has reached this position
    for (std::size_t at = size; at-- > 0;) {
      if (at + index_of(draft_length) >= size) continue;
      RecordTotals& sum = left[at];
      for (int j = 0; j <= draft_length; ++j) {
        const double p = distributions[first + at].accepted[index_of(j)];
        const double tokens = j + 1.0;
        const RecordTotals& rest = left[at + index_of(j) + 1];
        sum.rounds += p * (1.0 + rest.rounds);
        sum.emitted += p * (tokens + rest.emitted);
        sum.accepted += p * (j + rest.accepted);
        sum.tries += p * (j + (j < draft_length ? 1.0 : 0.0) + rest.tries);
        sum.rounds_squared += p * (1.0 + 2.0 * rest.rounds + rest.rounds_squared);
        sum.emitted_squared += p * (tokens * tokens + 2.0 * tokens * rest.emitted + rest.emitted_squared);
        sum.rounds_emitted += p * (tokens + tokens * rest.rounds + rest.emitted + rest.rounds_emitted);
      }
    }
    const RecordTotals& whole = left[0];
    mean.rounds += share * whole.rounds;
    mean.emitted += share * whole.emitted;
    mean.accepted += share * whole.accepted;
    mean.tries += share * whole.tries;
    mean.rounds_squared += share * whole.rounds_squared;
    mean.emitted_squared += share * whole.emitted_squared;
    mean.rounds_emitted += share * whole.rounds_emitted;
  }
  return mean;
}

}  // namespace specsim::theory
