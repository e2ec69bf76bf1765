// What a curve says, in words.
#pragma once

#include "sim/answers/load/curve.h"

#include <string>
#include <vector>

namespace specsim::load {

// Up to which load speculation pays, by mean TPOT and by output throughput, where the two servers' curves cross, with the
// interval between the replications; what the servers complete when saturated; and which runs are too short for what they say.
std::vector<std::string> verdict(const std::vector<CurvePoint>& curve, Load load);

// "43.42 ± 0.31", or the value alone where nothing is known of its error.
std::string with_interval(double value, double half_width);

}  // namespace specsim::load
