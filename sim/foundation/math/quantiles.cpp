#include "sim/foundation/math/quantiles.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace specsim::math {

double sample_quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double sample_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1.0));
}

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

double normal_upper_quantile(double p) { return boost::math::quantile(boost::math::complement(boost::math::normal(), p)); }

double normal_tail(double z) { return boost::math::cdf(boost::math::complement(boost::math::normal(), z)); }

double student_t_half_width(double level, double freedom) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), 0.5 * (1.0 - level)));
}

double chi_squared_tail(double x, double freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(freedom), x));
}

double binomial_at_most(double count, double trials, double share) {
  return boost::math::cdf(boost::math::binomial_distribution<double>(trials, share), count);
}

double binomial_above(double count, double trials, double share) {
  return boost::math::cdf(boost::math::complement(boost::math::binomial_distribution<double>(trials, share), count));
}

}  // namespace specsim::math
