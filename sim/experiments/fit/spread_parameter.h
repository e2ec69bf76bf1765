// What fits of synthetic distributions say: parameters, and the figures that they were made to meet.
#pragma once

#include <limits>
#include <string>

namespace specsim::fit {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A parameter of the family. NaN for an error: it was not fitted, or one request alone does not tell.
struct SpreadParameter {
  double value = 0.0;
  double error = 0.0;  // standard error, over requests and of the simulated contexts that moments were worked out from
  bool fitted = false;
};

// A figure that the fit is made to meet.
struct SpreadMoment {
  std::string name;
  double recorded = 0.0;
  double error = 0.0;  // standard error, over requests
  double fitted = 0.0;
};

}  // namespace specsim::fit
