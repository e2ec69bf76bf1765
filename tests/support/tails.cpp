#include "tests/support/tails.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <cmath>

namespace specsim::tests {

namespace bm = boost::math;

double chi_square_tail(double statistic, double degrees) { return bm::cdf(bm::complement(bm::chi_squared(degrees), statistic)); }

double chi_square_p(const std::vector<double>& observed, const std::vector<double>& expected) {
  double statistic = 0.0;
  int cells = 0;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    if (expected[i] == 0.0) {
      if (observed[i] > 0.0) return 0.0;
      continue;
    }
    statistic += (observed[i] - expected[i]) * (observed[i] - expected[i]) / expected[i];
    ++cells;
  }
  return chi_square_tail(statistic, cells - 1);
}

double chi_square_p(const std::vector<double>& observed, double expected_each) {
  return chi_square_p(observed, std::vector<double>(observed.size(), expected_each));
}

double student_t_p(double statistic, double degrees) {
  return 2.0 * bm::cdf(bm::complement(bm::students_t(degrees), std::abs(statistic)));
}

double normal_cdf(double x, double mean, double deviation) { return bm::cdf(bm::normal(mean, deviation), x); }

double beta_cdf(double x, double a, double b) { return bm::cdf(bm::beta_distribution<double>(a, b), x); }

}  // namespace specsim::tests
