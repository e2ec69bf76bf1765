#include "sim/rounds/theory/bounds.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace specsim::theory {
namespace {

void check_distribution(std::span<const double> distribution) {
  SPECSIM_CHECK(!distribution.empty(), "empty distribution");
  math::CompensatedSum sum;
  for (const double share : distribution) {
    SPECSIM_CHECK(share >= 0.0, "share = {}", share);
    sum += share;
  }
  SPECSIM_CHECK(std::abs(sum.value() - 1.0) < 1e-9, "distribution sums to {}", sum.value());
}

void check_pair(std::span<const double> target, std::span<const double> draft) {
  SPECSIM_CHECK(target.size() == draft.size(), "target has {} tokens, draft {}", target.size(), draft.size());
  check_distribution(target);
  check_distribution(draft);
}

// Half the L1 distance of two vectors, checked elsewhere.
double half_distance(std::span<const double> first, std::span<const double> second) {
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < first.size(); ++x) sum += std::abs(first[x] - second[x]);
  return 0.5 * sum.value();
}

}  // namespace

double overlap(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) sum += std::min(target[x], draft[x]);
  return sum.value();
}

double total_variation(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  return half_distance(target, draft);
}

double kl_divergence(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (target[x] == 0.0) continue;
    if (draft[x] == 0.0) return std::numeric_limits<double>::infinity();
    sum += target[x] * std::log(target[x] / draft[x]);
  }
  return std::max(0.0, sum.value());
}

double chi_squared(std::span<const double> draft, std::span<const double> target) {
  check_pair(target, draft);
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) {
    const double difference = draft[x] - target[x];
    if (difference == 0.0) continue;
    if (target[x] == 0.0) return std::numeric_limits<double>::infinity();
    sum += difference * difference / target[x];
  }
  return sum.value();
}

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

int argmax(std::span<const double> distribution) {
  SPECSIM_CHECK(!distribution.empty(), "empty distribution");
  return static_cast<int>(std::max_element(distribution.begin(), distribution.end()) - distribution.begin());
}

double sample_match_alpha(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) sum += target[x] * draft[x];
  return sum.value();
}

double argmax_draft_alpha(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  return target[static_cast<std::size_t>(argmax(draft))];
}

std::vector<double> soft_argmax_distribution(std::span<const double> target, std::span<const double> draft) {
  const double accepted = soft_argmax_alpha(target, draft);
  const auto best = static_cast<std::size_t>(argmax(draft));
  std::vector<double> distribution(target.size(), 0.0);
  // A rejection needs target(best) < draft(best), so the residual has mass then and none of it on the argmax.
  const double residual_mass = half_distance(target, draft);
  if (accepted < 1.0) {
    for (std::size_t x = 0; x < target.size(); ++x) {
      distribution[x] = (1.0 - accepted) * std::max(0.0, target[x] - draft[x]) / residual_mass;
    }
  }
  distribution[best] += accepted;
  return distribution;
}

double soft_argmax_alpha(std::span<const double> target, std::span<const double> draft) {
  check_pair(target, draft);
  const auto best = static_cast<std::size_t>(argmax(draft));
  return std::min(1.0, target[best] / draft[best]);
}

double soft_argmax_bias(std::span<const double> target, std::span<const double> draft) {
  return half_distance(soft_argmax_distribution(target, draft), target);
}

}  // namespace specsim::theory
