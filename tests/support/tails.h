// Tails of the distributions that tests use, compiled once: Boost.Math costs each file that includes it more than a second.
#pragma once

#include <vector>

namespace specsim::tests {

// P(X >= statistic) for chi-squared with `degrees` of freedom.
double chi_square_tail(double statistic, double degrees);
// Pearson's test of counts, with one degree of freedom less than cells. A cell with expectation 0 does not count as a cell, and
// the result is 0 if it has a count.
double chi_square_p(const std::vector<double>& observed, const std::vector<double>& expected);
// The same where all cells are equally likely.
double chi_square_p(const std::vector<double>& observed, double expected_each);
// P(|T| >= |statistic|) for Student's t with `degrees` of freedom.
double student_t_p(double statistic, double degrees);
// P(X <= x) for a normal X.
double normal_cdf(double x, double mean, double deviation);
// P(X <= x) for X from Beta(a, b).
double beta_cdf(double x, double a, double b);

}  // namespace specsim::tests
