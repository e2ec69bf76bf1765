// Means with their errors, Student's t intervals, and Welch's test of two means.
#pragma once

#include <cmath>
#include <span>

namespace specsim::report {

// A mean, its standard error (NaN for fewer than two samples), and that error's degrees of freedom.
struct Estimate {
  double value = 0.0;
  double error = 0.0;
  double freedom = 0.0;
};
// The mean of independent samples; its error from their spread.
Estimate mean_of(std::span<const double> samples);

// 95 % of a normal distribution lie within this many standard deviations of its mean.
constexpr double kIn95 = 1.959963984540054;

// Half the width of the two-sided interval around a mean with this standard error, by Student's t distribution. `level`: the
// share of such intervals that contain the true value. NaN if the error is NaN or there is no degree of freedom.
double half_width(double error, double freedom, double level = 0.95);
double half_width(const Estimate& estimate, double level = 0.95);

// Welch's test of two means whose variances differ (Welch 1947): t = difference / error of the difference, compared with
// Student's t with the Welch-Satterthwaite degrees of freedom. If neither mean has any error, they agree to one part in 10^9 (t =
// 0) or do not (t infinite).
struct WelchTest {
  double t = NAN;      // NaN: one of the means has no error, so there is no verdict
  double limit = NAN;  // the largest |t| inside the two-sided interval
  [[nodiscard]] bool judged() const { return !std::isnan(t); }
  [[nodiscard]] bool inside() const { return std::abs(t) <= limit; }
};
WelchTest welch_test(const Estimate& a, const Estimate& b, double level = 0.99);

}  // namespace specsim::report
