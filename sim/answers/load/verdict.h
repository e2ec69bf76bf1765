// The results of a curve in words.
#pragma once

#include "sim/answers/load/curve.h"

#include <string>
#include <vector>

namespace specsim::load {

// Reports up to which load speculation pays, by mean TPOT and by output throughput, and where the two servers' curves cross,
// with the interval between the replications. Also the servers' saturated rates, and the runs that are too short.
std::vector<std::string> verdict(const std::vector<CurvePoint>& curve, Load load);

// "43.42 ± 0.31", or the value alone if its error is unknown.
std::string with_interval(double value, double half_width);

}  // namespace specsim::load
