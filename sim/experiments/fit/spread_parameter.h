// The results of fits of synthetic distributions: parameters, and the figures that they were fitted to.
#pragma once

#include <limits>
#include <string>

namespace specsim::fit {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A parameter of the family. Its error is NaN if it was not fitted, or if a single request gives no error.
struct SpreadParameter {
  double value = 0.0;
  double error = 0.0;  // standard error, over requests and over simulated contexts
  bool fitted = false;
};

// A figure that the fit matches.
struct SpreadMoment {
  std::string name;
  double recorded = 0.0;
  double error = 0.0;  // standard error, over requests
  double fitted = 0.0;
};

}  // namespace specsim::fit
