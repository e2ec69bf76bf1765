// Quantiles and tails of the distributions that tests and intervals use. Boost.Math computes them. It is included only here,
// because each file that includes it takes a second longer to compile.
#pragma once

#include <span>

namespace specsim::math {

// The value below which this share of a sorted sample lies, with linear interpolation as in numpy; NaN without values. 0 <= share
// <= 1.
[[nodiscard]] double sample_quantile(std::span<const double> sorted, double share);

// The standard deviation of a sample, with n - 1 in the denominator; NaN for fewer than two values.
[[nodiscard]] double sample_deviation(std::span<const double> values);

// Quantiles of the standard normal distribution: P(Z <= result) = p, and for the upper one P(Z > result) = p; 0 < p < 1.
[[nodiscard]] double normal_quantile(double p);
[[nodiscard]] double normal_upper_quantile(double p);
// P(Z > z).
[[nodiscard]] double normal_tail(double z);

// Student's t: half the width, in standard errors, of the two-sided interval that contains the true value with probability
// `level`; freedom > 0.
[[nodiscard]] double student_t_half_width(double level, double freedom);

// P(X > x) for chi-squared; x >= 0, freedom > 0.
[[nodiscard]] double chi_squared_tail(double x, double freedom);

// P(X <= count) and P(X > count) for `trials` of probability `share`, exact; 0 <= share <= 1, 0 <= count <= trials.
[[nodiscard]] double binomial_at_most(double count, double trials, double share);
[[nodiscard]] double binomial_above(double count, double trials, double share);

}  // namespace specsim::math
