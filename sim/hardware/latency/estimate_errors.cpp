#include "sim/hardware/latency/estimate_errors.h"

#include "sim/foundation/math/quantiles.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

EstimateErrors estimate_errors(std::vector<double> ratios) {
  EstimateErrors errors{.count = ratios.size(), .median_ratio = median_of(ratios)};
  for (double& ratio : ratios) ratio = std::abs(ratio - 1.0);
  std::sort(ratios.begin(), ratios.end());
  errors.median_error = math::sample_quantile(ratios, 0.5);
  errors.high_error = math::sample_quantile(ratios, 0.9);
  errors.worst_error = ratios.back();
  return errors;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return math::sample_quantile(values, 0.5);
}

}  // namespace specsim::cost
