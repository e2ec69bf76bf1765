#include "sim/answers/plan/price_noise.h"

#include "sim/hardware/latency/deployment.h"

#include <cmath>
#include <optional>

namespace specsim::plan {
namespace {

// Share of the round that is verification, or drafting, times the error of its kernels specific to these rows.
double of_rows(const RoundPrice& price) {
  const double rows = price.verified_rows;
  const double error = price.cost->kernel_error(cost::Role::target, {price.workload.batch, rows, price.workload.context, rows});
  return std::sqrt(1.0 - price.cost->shared_variance(cost::Role::target)) * error * price.time.verify.total() /
         price.time.total();
}
double drafting(const RoundPrice& price) {
  return price.cost->kernel_error(cost::Role::draft, {price.workload.batch, 1.0, price.workload.context, 1.0}) *
         price.time.draft.total() / price.time.total();
}

cost::StepSetting setting_of(const RoundPrice& price) {
  return {price.workload.batch, price.workload.context, static_cast<int>(std::lround(price.verified_rows)) - 1};
}

double square(double x) { return x * x; }

std::optional<cost::FactorBelief> belief_of(const RoundPrice& price) {
  const cost::Uncertainty* const uncertainty = price.cost->uncertainty();
  return uncertainty != nullptr ? uncertainty->factors() : std::nullopt;
}

bool one_draft(const RoundPrice& a, const RoundPrice& b) {
  if (a.cost == b.cost) return true;
  const cost::Deployment* of_a = a.cost->deployment();
  const cost::Deployment* of_b = b.cost->deployment();
  return of_a != nullptr && of_b != nullptr && of_a->draft && of_b->draft && of_a->draft->name == of_b->draft->name;
}

}  // namespace

double price_noise(const RoundPrice& a, const RoundPrice& b) {
  double variance = 0.0;
  if (const std::optional<cost::FactorBelief> belief = belief_of(a)) {
    cost::FactorVector slope = cost::round_slope(a.time, a.workload, a.verified_rows);
    const cost::FactorVector other = cost::round_slope(b.time, b.workload, b.verified_rows);
    for (std::size_t i = 0; i < cost::kFactors; ++i) slope[i] -= other[i];
    variance += cost::ratio_variance(*belief, slope) + 2.0 * square(a.cost->uncertainty()->discrepancy()) *
                                                           (1.0 - cost::discrepancy_correlation(setting_of(a), setting_of(b)));
  }
  if (a.verified_rows != b.verified_rows) variance += of_rows(a) * of_rows(a) + of_rows(b) * of_rows(b);
  if (!one_draft(a, b)) variance += drafting(a) * drafting(a) + drafting(b) * drafting(b);
  return std::sqrt(variance);
}

double price_error(const RoundPrice& price) {
  double variance = of_rows(price) * of_rows(price);
  if (const std::optional<cost::FactorBelief> belief = belief_of(price))
    variance += cost::ratio_variance(*belief, cost::round_slope(price.time, price.workload, price.verified_rows)) +
                square(price.cost->uncertainty()->discrepancy());
  return std::sqrt(variance);
}

}  // namespace specsim::plan
