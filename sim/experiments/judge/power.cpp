#include "sim/experiments/judge/power.h"

#include "sim/foundation/base/bisect.h"
#include "sim/foundation/math/quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace specsim::judge {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRareEvents = 1000.0;  // expected rejections or acceptances

// Two-sided p-value bound of a sum that is `z` standard deviations off its mean, for any distribution of its independent terms:
// Chebyshev's bound, or Bernstein's if no term can deviate by more than `range`.
double largest_p(double z, double deviation, double range) {
  const double off = std::abs(z);
  const double bernstein = 2.0 * std::exp(-0.5 * off * off / (1.0 + range * off / (3.0 * deviation)));
  return std::min({1.0, 1.0 / (off * off), bernstein});
}

// The smallest x of [low, high] for which `holds` is true. It must be monotonic, and true for `high`.
template <class Holds>
double smallest(double low, double high, const Holds& holds) {
  return bisect(low, high, [&](double x) { return !holds(x); }).high;
}

}  // namespace

double binomial_p(double observed, double n, double share) {
  if (share >= 1.0) return 1.0;
  const double below = math::binomial_at_most(observed, n, share);
  const double above = observed > 0.0 ? math::binomial_above(observed - 1.0, n, share) : 1.0;
  return std::min(1.0, 2.0 * std::min(below, above));
}

double rare_leak(double n, double share, double leaked, double level) {
  double critical = std::floor(n * share);
  for (double step = std::max(1.0, std::floor(std::sqrt(n))); step >= 1.0; step = std::floor(step / 2.0))
    while (critical + step <= n && 2.0 * math::binomial_above(critical + step - 1.0, n, share) >= level) critical += step;
  ++critical;  // the smallest count whose upper tail is below the level
  const auto power = [&](double leak) {
    const double p = (1.0 - leak) * share + leak * leaked;
    return p >= 1.0 ? 1.0 : math::binomial_above(critical - 1.0, n, p);
  };
  if (critical > n || power(1.0) < kPower) return kInfinite;
  return smallest(0.0, 1.0, [&](double leak) { return power(leak) >= kPower; });
}

MeanTest::MeanTest(const spec::Cell& cell, int strata, const Prediction& prediction, const decode::Counts& counts)
    : prediction_(&prediction),
      rounds_(static_cast<double>(counts.rounds)),
      reached_(counts.reached.empty() ? 0.0 : static_cast<double>(counts.reached[0])),
      accepted_first_(counts.accepted.empty() ? 0.0 : static_cast<double>(counts.accepted[0])),
      range_(cell.contexts->process->shape().ends() ? kInfinite
                                                    : static_cast<double>(cell.sequence_rounds) * cell.draft_length()),
      draft_length_(cell.draft_length()),
      certain_(prediction.tokens_per_round_error < 1e-9 * prediction.tokens_per_round),
      alike_(prediction.accepted_distribution.size() == 1 && strata == 1) {
  for (const std::uint64_t n : counts.reached) tries_ += static_cast<double>(n);
  const double measured = static_cast<double>(counts.emitted) / rounds_;
  const double difference = measured - prediction.tokens_per_round;
  // If every round must have the same outcome (alpha 0 or 1), only rounding may differ.
  if (!certain_)
    z_ = difference / prediction.tokens_per_round_error;
  else if (!(std::abs(difference) < 1e-6 * measured))
    z_ = std::copysign(kInfinite, difference);
}

MeanTest::Kind MeanTest::kind(double times) const {
  if (certain_) return Kind::certain;
  if (draft_length_ == 0 || times * tries_ * std::min(prediction_->alpha, 1.0 - prediction_->alpha) >= kRareEvents)
    return Kind::normal;
  return alike_ ? Kind::counted : Kind::bounded;
}

double MeanTest::p() const {
  switch (kind(1.0)) {
    case Kind::counted:
      return binomial_p(accepted_first_, reached_, prediction_->accepted_distribution[0].tail(1));
    case Kind::bounded:
      return largest_p(z_, prediction_->tokens_per_round_error * rounds_, range_);
    case Kind::certain:
    case Kind::normal:
      break;
  }
  if (std::isinf(z_)) return 0.0;
  return 2.0 * math::normal_tail(std::abs(z_));
}

double MeanTest::smallest_error(double level, double times) const {
  const double mean = prediction_->tokens_per_round;
  const double fixed = prediction_->theory_error;
  const double own = prediction_->tokens_per_round_error;
  const double deviation = std::sqrt(std::max(own * own - fixed * fixed, 0.0) / times);
  switch (kind(times)) {
    case Kind::certain:
      // A single wrong round is detected. An error shows in at least one round with power kPower, and each such round deviates
      // by at most a block.
      return -std::log(1.0 - kPower) / (times * rounds_) * draft_length_ / mean;
    case Kind::counted:
      return counted_error(level, times);
    case Kind::bounded: {
      const double spread = deviation * times * rounds_;
      constexpr double kFarthest = 1e9;
      if (largest_p(kFarthest, spread, range_) >= level) return kInfinite;
      const double critical = smallest(0.0, kFarthest, [&](double z) { return largest_p(z, spread, range_) < level; });
      return (critical + math::normal_quantile(kPower)) * deviation / mean;
    }
    case Kind::normal:
      break;
  }
  return (math::normal_upper_quantile(level / 2.0) + math::normal_quantile(kPower)) * deviation / mean;
}

double MeanTest::shifted(double shift) const {
  const theory::RoundDistribution& distribution = prediction_->accepted_distribution[0];
  double mean = 1.0;
  double own = 1.0;
  double stays = 1.0;
  for (int j = 0; j < draft_length_; ++j) {
    const double reached = distribution.tail(j);
    const double acceptance = reached > 0.0 ? distribution.tail(j + 1) / reached : 0.0;
    own += distribution.tail(j + 1);
    stays *= std::clamp(acceptance + shift, 0.0, 1.0);
    mean += stays;
  }
  return mean / own - 1.0;
}

double MeanTest::counted_error(double level, double times) const {
  const double n = std::max(std::floor(times * reached_), 1.0);
  const double share = prediction_->accepted_distribution[0].tail(1);
  if (!(share > 0.0 && share < 1.0)) return kInfinite;
  const auto rejects_low = [&](double count) { return 2.0 * math::binomial_at_most(count, n, share) < level; };
  const auto rejects_high = [&](double count) { return 2.0 * math::binomial_above(count - 1.0, n, share) < level; };
  // An error that is too large to be possible need not be detected.
  const auto side = [&](double farthest, const auto& power) {
    if (std::abs(shifted(farthest)) <= kPowerError) return 0.0;
    if (power(farthest) < kPower) return kInfinite;
    return std::abs(shifted(farthest * smallest(0.0, 1.0, [&](double part) { return power(part * farthest) >= kPower; })));
  };
  double down = kInfinite;
  if (rejects_low(0.0)) {
    // The largest count that is rejected as too low.
    const double critical = std::floor(smallest(0.0, n, [&](double count) { return !rejects_low(std::floor(count)); })) - 1.0;
    down = side(-share,
                [&](double shift) { return share + shift <= 0.0 ? 1.0 : math::binomial_at_most(critical, n, share + shift); });
  } else if (std::abs(shifted(-share)) <= kPowerError) {
    down = 0.0;
  }
  double up = kInfinite;
  if (rejects_high(n)) {
    const double critical = std::ceil(smallest(0.0, n, [&](double count) { return rejects_high(std::ceil(count)); }));
    up = side(1.0 - share,
              [&](double shift) { return share + shift >= 1.0 ? 1.0 : math::binomial_above(critical - 1.0, n, share + shift); });
  } else if (std::abs(shifted(1.0 - share)) <= kPowerError) {
    up = 0.0;
  }
  return std::max(up, down);
}

double MeanTest::rounds_for(double error, double level) const {
  constexpr double kMost = 0x1p60;
  double high = 1.0;
  while (smallest_error(level, high) > error)
    if ((high *= 2.0) > kMost) return std::numeric_limits<double>::quiet_NaN();
  double low = 0.5 * high;
  if (high > 1.0) high = smallest(low, high, [&](double times) { return smallest_error(level, times) <= error; });
  return high * rounds_;
}

}  // namespace specsim::judge
