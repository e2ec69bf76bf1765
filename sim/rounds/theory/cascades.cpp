#include "sim/rounds/theory/cascades.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/bounds.h"

#include <algorithm>
#include <cstddef>

namespace specsim::theory {

std::vector<double> cascade_distribution(std::span<const double> target, std::span<const double> draft, const std::string& rule,
                                         double alpha) {
  const double apart = total_variation(target, draft);  // throws unless both are distributions of one size
  const double target_best = *std::max_element(target.begin(), target.end());
  const double draft_best = *std::max_element(draft.begin(), draft.end());
  if (rule == "chow" || rule == "diff" || rule == "opt") {
    const double bar = rule == "chow" ? 1.0 - alpha : target_best - alpha * (rule == "opt" ? apart : 1.0);
    const std::span<const double> chosen = draft_best < bar ? target : draft;
    return {chosen.begin(), chosen.end()};
  }
  SPECSIM_CHECK(rule == "token_v1" || rule == "token_v2" || rule == "token_v3", "rule {}", rule);
  std::vector<double> distribution(target.size(), 0.0);
  math::CompensatedSum replaced;
  for (std::size_t x = 0; x < draft.size(); ++x) {
    const bool trusted = rule == "token_v1"   ? draft[x] >= target_best - alpha
                         : rule == "token_v2" ? target[x] >= target_best - alpha
                                              : target[x] >= (1.0 - alpha) * target_best;
    if (trusted)
      distribution[x] = draft[x];
    else
      replaced += draft[x];
  }
  for (std::size_t x = 0; x < target.size(); ++x) distribution[x] += replaced.value() * target[x];
  return distribution;
}

std::vector<double> judge_acceptance(std::span<const double> target, std::span<const double> drafted, double rate) {
  SPECSIM_CHECK(target.size() == drafted.size(), "target has {} tokens, draft {}", target.size(), drafted.size());
  SPECSIM_CHECK(rate >= 0.0 && rate <= 1.0, "rate = {}", rate);
  std::vector<double> acceptance(target.size(), 0.0);
  for (std::size_t x = 0; x < target.size(); ++x) {
    if (drafted[x] == 0.0) continue;
    const double by_ratio = std::min(1.0, target[x] / drafted[x]);
    acceptance[x] = by_ratio + rate * (1.0 - by_ratio);
  }
  return acceptance;
}

}  // namespace specsim::theory
