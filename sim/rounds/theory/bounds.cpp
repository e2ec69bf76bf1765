#include "sim/rounds/theory/bounds.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/automaton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::theory {
namespace {

void check_pair(std::span<const double> target, std::span<const double> draft) {
  SPECSIM_CHECK(target.size() == draft.size(), "target has {} tokens, draft {}", target.size(), draft.size());
  check_distribution(target);
  check_distribution(draft);
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
  math::CompensatedSum sum;
  for (std::size_t x = 0; x < target.size(); ++x) sum += std::abs(target[x] - draft[x]);
  return 0.5 * sum.value();
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

int argmax(std::span<const double> distribution) {
  SPECSIM_CHECK(!distribution.empty(), "empty distribution");
  return static_cast<int>(std::max_element(distribution.begin(), distribution.end()) - distribution.begin());
}

}  // namespace specsim::theory
