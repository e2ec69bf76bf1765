#include "sim/rounds/theory/speedup.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/round_distribution.h"

#include <boost/math/special_functions/lambert_w.hpp>
#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace specsim::theory {
namespace {

void check_cost(const RatioCost& cost) {
  SPECSIM_CHECK(cost.cost_ratio >= 0.0, "cost_ratio = {}", cost.cost_ratio);
  SPECSIM_CHECK(cost.verify_inflation > 0.0, "verify_inflation = {}", cost.verify_inflation);
  SPECSIM_CHECK(cost.overhead >= 0.0, "overhead = {}", cost.overhead);
}

}  // namespace

double speedup(double tokens_per_round, int draft_length, const RatioCost& cost) {
  check_cost(cost);
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  return tokens_per_round / cost.round_time(draft_length);
}

double constant_alpha_speedup(double alpha, int draft_length, const RatioCost& cost) {
  return speedup(tokens_per_round(alpha, draft_length), draft_length, cost);
}

double speedup_by_target_to_draft_ratio(double tokens_per_round, int draft_length, double target_to_draft_ratio) {
  SPECSIM_CHECK(target_to_draft_ratio > 0.0, "target_to_draft_ratio = {}", target_to_draft_ratio);
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  return tokens_per_round / (1.0 + draft_length / target_to_draft_ratio);
}

double tokens_per_second(double tokens_per_round, int draft_length, double draft_seconds, double target_seconds) {
  SPECSIM_CHECK(draft_length >= 0, "draft_length = {}", draft_length);
  SPECSIM_CHECK(draft_seconds >= 0.0 && target_seconds > 0.0, "draft {} s, target {} s", draft_seconds, target_seconds);
  return tokens_per_round / (draft_length * draft_seconds + target_seconds);
}

BestDraftLength best_draft_length(double alpha, const RatioCost& cost, int longest) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  SPECSIM_CHECK(longest >= 0, "longest = {}", longest);
  std::vector<double> tokens = {1.0};
  for (int length = 1; length <= longest; ++length) tokens.push_back(tokens_per_round(alpha, length));
  return best_draft_length(tokens, cost);
}

BestDraftLength best_draft_length(std::span<const double> tokens_by_length, const RatioCost& cost) {
  check_cost(cost);
  BestDraftLength best;
  for (std::size_t length = 1; length < tokens_by_length.size(); ++length) {
    const double candidate = tokens_by_length[length] / cost.round_time(static_cast<int>(length));
    if (candidate > best.speedup) best = {static_cast<int>(length), candidate};
  }
  return best;
}

double lambert_w_lower(double excess) {
  SPECSIM_CHECK(excess >= 0.0, "excess = {}", excess);
  if (std::isinf(excess)) return excess;
  // At the branch point z - ln(1 + z) cancels, so its inverse series is used (checked by substitution in the tests).
  if (excess < 1e-5) {
    const double root = std::sqrt(2.0 * excess);
    return root * (1.0 + root * (1.0 / 3.0 + root * (1.0 / 36.0 + root * (-1.0 / 270.0 + root / 4320.0))));
  }
  // The library's Lambert W needs an argument that is a normal number. Beyond that the logarithmic expansion gives the start
  // value.
  double above_one = excess < 690.0 ? -boost::math::lambert_wm1(-std::exp(-1.0 - excess)) - 1.0 : excess + std::log1p(excess);
  // Newton on z - ln(1 + z) = excess, whose slope is z / (1 + z), restores the digits lost in forming e^-(1 + excess).
  for (int step = 0; step < 4; ++step) {
    above_one -= (above_one - std::log1p(above_one) - excess) * (1.0 + above_one) / above_one;
  }
  return above_one;
}

double continuous_best_draft_length(double alpha, const RatioCost& cost) {
  check_cost(cost);
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  if (alpha == 0.0) return 0.0;
  if (cost.cost_ratio == 0.0) return std::numeric_limits<double>::infinity();
  const double fixed = (cost.verify_inflation + cost.overhead) / cost.cost_ratio;  // r
  // At alpha 1 speedup is (x + 1) / (x c + v + o): it grows without limit if r > 1, otherwise never.
  if (alpha == 1.0) return fixed > 1.0 ? std::numeric_limits<double>::infinity() : 0.0;
  const double decay = -std::log(alpha);
  const double excess = (fixed - 1.0) * decay;  // A - 1
  if (excess <= 0.0) return 0.0;
  // alpha^-(x + 1) = y at the optimum: ln y / decay rather than (y - A) / decay, which cancels at large A.
  return std::max(0.0, std::log1p(lambert_w_lower(excess)) / decay - 1.0);
}

std::optional<double> break_even_alpha(int draft_length, const RatioCost& cost) {
  check_cost(cost);
  SPECSIM_CHECK(draft_length >= 1, "draft_length = {}", draft_length);
  const double needed = cost.round_time(draft_length);  // tokens per round
  if (needed <= 1.0) return 0.0;
  if (needed > draft_length + 1.0) return std::nullopt;
  // Tokens per round grow from 1 to draft_length + 1 over [0, 1].
  const auto excess = [&](double alpha) { return math::geometric_sum(alpha, draft_length + 1) - needed; };
  return boost::math::tools::bisect(excess, 0.0, 1.0, boost::math::tools::eps_tolerance<double>()).second;
}

std::optional<BreakEven> break_even_alpha_any(const RatioCost& cost, int longest) {
  std::optional<BreakEven> best;
  for (int length = 1; length <= longest; ++length) {
    // Only a length that is better just below the best alpha so far is worth solving for.
    if (best && math::geometric_sum(best->alpha, length + 1) <= cost.round_time(length)) continue;
    const std::optional<double> alpha = break_even_alpha(length, cost);
    if (alpha && (!best || *alpha < best->alpha)) best = BreakEven{*alpha, length};
  }
  return best;
}

SpeedupSensitivity speedup_sensitivity(double alpha, int draft_length, const RatioCost& cost) {
  const double now = constant_alpha_speedup(alpha, draft_length, cost);
  const double time = cost.round_time(draft_length);
  return {math::geometric_sum_derivative(alpha, draft_length + 1) / time, -now * draft_length / time, -now / time};
}

}  // namespace specsim::theory
