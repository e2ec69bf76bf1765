// How far prices lie from what was measured.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::cost {

struct PriceErrors {
  std::size_t count = 0;
  double median_ratio = 0.0;  // priced over measured
  double median_error = 0.0;  // median of the absolute relative error
  double high_error = 0.0;    // its 90th percentile
  double worst_error = 0.0;
};

// Of prices over measurements, of which there is one at least.
PriceErrors price_errors(std::vector<double> ratios);

// NaN without values.
double median_of(std::vector<double> values);

}  // namespace specsim::cost
