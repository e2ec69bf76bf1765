#include "sim/rounds/families/scale.h"

#include <boost/random/normal_distribution.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::families {

double scale_of_context(double middle, double spread, const double* deviate, rng::Stream& random) {
  if (spread == 0.0) return middle;
  if (deviate != nullptr) return std::min(middle * std::exp(spread * *deviate), kLargestScale);
  boost::random::normal_distribution<double> normal(0.0, spread);
  return std::min(middle * std::exp(normal(random)), kLargestScale);
}

}  // namespace specsim::families
