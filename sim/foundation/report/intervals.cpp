#include "sim/foundation/report/intervals.h"

#include "sim/foundation/math/quantiles.h"

#include <limits>

namespace specsim::report {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Estimate mean_of(std::span<const double> samples) {
  const auto n = static_cast<double>(samples.size());
  double mean = 0.0;
  for (const double x : samples) mean += x / n;
  double squares = 0.0;
  for (const double x : samples) squares += (x - mean) * (x - mean);
  return {mean, n > 1.0 ? std::sqrt(squares / (n * (n - 1.0))) : kNaN, n - 1.0};
}

double half_width(double error, double freedom, double level) {
  if (std::isnan(error) || !(freedom > 0.0)) return kNaN;
  return math::student_t_half_width(level, freedom) * error;
}

double half_width(const Estimate& estimate, double level) { return half_width(estimate.error, estimate.freedom, level); }

WelchTest welch_test(const Estimate& a, const Estimate& b, double level) {
  const double error = std::hypot(a.error, b.error);
  const double difference = a.value - b.value;
  if (std::isnan(error)) return {};
  constexpr double kCertain = 1e-9;  // relative difference up to which values without errors count as equal
  if (error < kCertain * std::abs(b.value))
    return {std::abs(difference) < kCertain * std::abs(b.value) ? 0.0 : std::copysign(INFINITY, difference), 0.0};
  const auto share = [](const Estimate& x) { return x.error > 0.0 ? std::pow(x.error, 4) / x.freedom : 0.0; };
  const double freedom = std::pow(error, 4) / (share(a) + share(b));
  return {difference / error, math::student_t_half_width(level, freedom)};
}

}  // namespace specsim::report
