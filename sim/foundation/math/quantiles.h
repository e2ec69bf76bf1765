// Quantiles and tails of the distributions that tests and intervals use. Boost.Math computes them; it is read here alone, because
// each unit that reads it spends a second of the compiler's time on it.
#pragma once

#include <span>

namespace specsim::math {

// The value below which this share of a sorted sample lies, linear between neighbours as numpy has it; NaN without values. 0 <=
// share <= 1.
[[nodiscard]] double sample_quantile(std::span<const double> sorted, double share);

// The standard deviation of a sample, with n - 1 in the denominator; NaN of fewer than two values.
[[nodiscard]] double sample_deviation(std::span<const double> values);

// The standard normal: P(Z <= it) = p, and P(Z > it) = p; 0 < p < 1.
[[nodiscard]] double normal_quantile(double p);
[[nodiscard]] double normal_upper_quantile(double p);
// P(Z > z).
[[nodiscard]] double normal_tail(double z);

// Student's t: half the width, in standard errors, of the two-sided interval that holds the truth with probability `level`;
// freedom > 0.
[[nodiscard]] double student_t_half_width(double level, double freedom);

// P(X > x) for chi-squared; x >= 0, freedom > 0.
[[nodiscard]] double chi_squared_tail(double x, double freedom);

// P(X <= count) and P(X > count) for `trials` of probability `share`, exact; 0 <= share <= 1, 0 <= count <= trials.
[[nodiscard]] double binomial_at_most(double count, double trials, double share);
[[nodiscard]] double binomial_above(double count, double trials, double share);

}  // namespace specsim::math
