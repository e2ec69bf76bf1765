#include "sim/experiments/fit/falling_rates.h"

#include <algorithm>
#include <cmath>

namespace specsim::fit {

namespace {

double covariate(std::size_t depth) { return std::log1p(static_cast<double>(depth)); }

double likelihood_of(const FallingRates& rates, const OutcomeCounts& counts) {
  double sum = 0.0;
  for (std::size_t s = 0; s < counts.judged.size(); ++s)
    for (std::size_t d = 0; d < counts.judged[s].size(); ++d) {
      const double x = rates.level[s] + rates.slope * covariate(d);
      // accepted log alpha + rejected log(1 - alpha), by log(1 - alpha) = -log(1 + e^x) without overflow
      sum += counts.accepted[s][d] * x - counts.judged[s][d] * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    }
  return sum;
}

// Newton's step: the Hessian is an arrow, a diagonal for the levels and a row for the slope.
FallingRates newton_step(const FallingRates& rates, const OutcomeCounts& counts) {
  const std::size_t states = counts.judged.size();
  std::vector<double> gradient(states, 0.0);
  std::vector<double> diagonal(states, 1e-9);
  std::vector<double> row(states, 0.0);
  double slope_gradient = 0.0;
  double corner = 1e-9;
  for (std::size_t s = 0; s < states; ++s)
    for (std::size_t d = 0; d < counts.judged[s].size(); ++d) {
      const double alpha = rates.alpha(s, d);
      const double residual = counts.accepted[s][d] - counts.judged[s][d] * alpha;
      const double weight = counts.judged[s][d] * alpha * (1.0 - alpha);
      const double g = covariate(d);
      gradient[s] += residual;
      diagonal[s] += weight;
      row[s] += weight * g;
      slope_gradient += residual * g;
      corner += weight * g * g;
    }
  for (std::size_t s = 0; s < states; ++s) {
    slope_gradient -= row[s] * gradient[s] / diagonal[s];
    corner -= row[s] * row[s] / diagonal[s];
  }
  FallingRates step;
  step.slope = corner > 1e-8 ? slope_gradient / corner : 0.0;  // one depth alone tells no slope
  for (std::size_t s = 0; s < states; ++s) step.level.push_back((gradient[s] - row[s] * step.slope) / diagonal[s]);
  return step;
}

}  // namespace

double FallingRates::alpha(std::size_t state, std::size_t depth) const {
  return 1.0 / (1.0 + std::exp(-(level[state] + slope * covariate(depth))));
}

void improve_rates(FallingRates& rates, const OutcomeCounts& counts) {
  constexpr int kSteps = 4;
  constexpr int kHalvings = 20;
  double now = likelihood_of(rates, counts);
  for (int i = 0; i < kSteps; ++i) {
    const FallingRates step = newton_step(rates, counts);
    double share = 1.0;
    for (int halving = 0; halving < kHalvings; ++halving, share *= 0.5) {
      FallingRates moved = rates;
      moved.slope += share * step.slope;
      for (std::size_t s = 0; s < moved.level.size(); ++s) moved.level[s] += share * step.level[s];
      if (const double gained = likelihood_of(moved, counts); gained > now) {
        rates = moved;
        now = gained;
        break;
      }
    }
  }
}

}  // namespace specsim::fit
