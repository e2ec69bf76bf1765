// Errors of estimated times, compared with measured ones.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::cost {

struct EstimateErrors {
  std::size_t count = 0;
  double median_ratio = 0.0;  // estimated over measured
  double median_error = 0.0;  // median of the absolute relative error
  double high_error = 0.0;    // its 90th percentile
  double worst_error = 0.0;
};

// Of the ratios of estimated to measured times, of which there is at least one.
EstimateErrors estimate_errors(std::vector<double> ratios);

// NaN without values.
double median_of(std::vector<double> values);

}  // namespace specsim::cost
