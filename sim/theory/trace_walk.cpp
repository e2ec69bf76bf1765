#include "sim/theory/trace_walk.h"

namespace specsim::theory {

std::vector<RoundDistribution> trace_distributions(std::span<const double> alpha, int draft_length) {
  std::vector<RoundDistribution> distributions;
  std::vector<double> window(static_cast<std::size_t>(draft_length));
  for (std::size_t at = 0; at < alpha.size(); ++at) {
    for (std::size_t j = 0; j < window.size(); ++j) window[j] = alpha[(at + j) % alpha.size()];
    distributions.push_back(by_position(window));
  }
  return distributions;
}

RunMoments trace_moments(std::span<const double> alpha, std::span<const std::uint32_t> starts, int draft_length, int rounds) {
  const std::vector<RoundDistribution> distributions = trace_distributions(alpha, draft_length);
  const std::size_t n = alpha.size();
  struct Left {  // of a sequence that stands here
    double emitted = 0.0;
    double square = 0.0;
    double tries = 0.0;
    double accepted = 0.0;
  };
  std::vector<Left> now(n);
  std::vector<Left> before(n);
  for (int round = 0; round < rounds; ++round) {
    std::swap(now, before);
    for (std::size_t at = 0; at < n; ++at) {
      Left sum;
      for (int j = 0; j <= draft_length; ++j) {
        const double p = distributions[at].accepted[static_cast<std::size_t>(j)];
        const double tokens = j + 1.0;
        const Left& rest = before[(at + static_cast<std::size_t>(j) + 1) % n];
        sum.emitted += p * (tokens + rest.emitted);
        sum.square += p * (tokens * tokens + 2.0 * tokens * rest.emitted + rest.square);
        sum.tries += p * (j + (j < draft_length ? 1.0 : 0.0) + rest.tries);
        sum.accepted += p * (j + rest.accepted);
      }
      now[at] = sum;
    }
  }
  RunMoments totals;
  double square = 0.0;
  const double share = 1.0 / static_cast<double>(starts.size());
  for (const std::uint32_t start : starts) {
    totals.emitted += share * now[start].emitted;
    totals.tries += share * now[start].tries;
    totals.accepted += share * now[start].accepted;
    square += share * now[start].square;
  }
  totals.variance = square - totals.emitted * totals.emitted;
  return totals;
}

}  // namespace specsim::theory
