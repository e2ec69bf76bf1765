#include "sim/answers/plan/latency_noise.h"

#include "sim/hardware/latency/deployment.h"

#include <cmath>
#include <optional>
#include <string>

namespace specsim::plan {
namespace {

// Share of the round that is verification, or drafting, times the error of its kernels specific to these rows.
double of_rows(const RoundEstimate& estimate) {
  const double rows = estimate.verified_rows;
  const cost::Pass pass{estimate.workload.batch, rows, estimate.workload.context, rows};
  return std::sqrt(1.0 - estimate.cost->shared_variance(cost::Role::target, pass)) *
         estimate.cost->kernel_error(cost::Role::target, pass) * estimate.time.verify.total() / estimate.time.total();
}
double drafting(const RoundEstimate& estimate) {
  return estimate.cost->kernel_error(cost::Role::draft, {estimate.workload.batch, 1.0, estimate.workload.context, 1.0}) *
         estimate.time.draft.total() / estimate.time.total();
}

cost::StepSetting setting_of(const RoundEstimate& estimate) {
  return {estimate.workload.batch, estimate.workload.context, static_cast<int>(std::lround(estimate.verified_rows)) - 1};
}

double square(double x) { return x * x; }

std::optional<cost::FactorBelief> belief_of(const RoundEstimate& estimate) {
  const cost::Uncertainty* const uncertainty = estimate.cost->uncertainty();
  return uncertainty != nullptr ? uncertainty->factors() : std::nullopt;
}

const std::string& gpu_of_draft(const cost::Deployment& deployment) {
  return deployment.draft_place ? deployment.draft_place->hardware.name : deployment.hardware.name;
}

bool one_draft(const RoundEstimate& a, const RoundEstimate& b) {
  if (a.cost == b.cost) return true;
  const cost::Deployment* of_a = a.cost->deployment();
  const cost::Deployment* of_b = b.cost->deployment();
  return of_a != nullptr && of_b != nullptr && of_a->draft && of_b->draft && of_a->draft->name == of_b->draft->name &&
         gpu_of_draft(*of_a) == gpu_of_draft(*of_b);
}

}  // namespace

double latency_noise(const RoundEstimate& a, const RoundEstimate& b) {
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

double estimate_error(const RoundEstimate& estimate) {
  double variance = of_rows(estimate) * of_rows(estimate);
  if (const std::optional<cost::FactorBelief> belief = belief_of(estimate))
    variance += cost::ratio_variance(*belief, cost::round_slope(estimate.time, estimate.workload, estimate.verified_rows)) +
                square(estimate.cost->uncertainty()->discrepancy());
  return std::sqrt(variance);
}

}  // namespace specsim::plan
