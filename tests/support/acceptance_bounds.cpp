#include "tests/support/acceptance_bounds.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/automaton.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace specsim::theory {

double pinsker_alpha(double kl) {
  SPECSIM_CHECK(kl >= 0.0, "kl = {}", kl);
  return std::max(0.0, 1.0 - std::sqrt(0.5 * kl));
}

double bretagnolle_huber_alpha(double kl) {
  SPECSIM_CHECK(kl >= 0.0, "kl = {}", kl);
  // 1 - sqrt(1 - e) = e / (1 + sqrt(1 - e)): without the cancellation at large kl.
  const double decayed = std::exp(-kl);
  return decayed / (1.0 + std::sqrt(-std::expm1(-kl)));
}

double adversary_probability(double total_variation) {
  SPECSIM_CHECK(total_variation >= 0.0 && total_variation <= 1.0, "total variation = {}", total_variation);
  return 0.5 * (1.0 + total_variation);
}

double expected_empirical_l1(std::span<const double> distribution, double samples) {
  check_distribution(distribution);
  SPECSIM_CHECK(samples > 0.0, "samples = {}", samples);
  math::CompensatedSum sum;
  for (const double share : distribution) sum += std::sqrt(share * std::max(0.0, 1.0 - share));
  return std::sqrt(2.0 / (std::numbers::pi * samples)) * sum.value();
}

double sample_match_alpha(std::span<const double> target, std::span<const double> draft) {
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) sum += target[x] * draft[x];
  return sum.value();
}

double argmax_draft_alpha(std::span<const double> target, std::span<const double> draft) {
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  return target[static_cast<std::size_t>(argmax(draft))];
}

std::vector<double> soft_argmax_distribution(std::span<const double> target, std::span<const double> draft) {
  const double accepted = soft_argmax_alpha(target, draft);
  const auto best = static_cast<std::size_t>(argmax(draft));
  std::vector<double> distribution(target.size(), 0.0);
  // A rejection needs target(best) < draft(best), so the residual has mass then and none of it on the argmax.
  const double residual_mass = total_variation(target, draft);
  if (accepted < 1.0) {
    for (std::size_t x = 0; x < target.size(); ++x) {
      distribution[x] = (1.0 - accepted) * std::max(0.0, target[x] - draft[x]) / residual_mass;
    }
  }
  distribution[best] += accepted;
  return distribution;
}

double soft_argmax_alpha(std::span<const double> target, std::span<const double> draft) {
  (void)overlap(target, draft);  // throws unless both are distributions of one size
  const auto best = static_cast<std::size_t>(argmax(draft));
  return std::min(1.0, target[best] / draft[best]);
}

double soft_argmax_bias(std::span<const double> target, std::span<const double> draft) {
  return total_variation(soft_argmax_distribution(target, draft), target);
}

}  // namespace specsim::theory
