// Which comparisons of a sweep the latency model's error leaves open.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The loads at which TPOT or output throughput with and without speculation differ by less than the standard error of the
// comparison (load::comparison_error); "" where there are none, or the cost model claims no error.
std::string price_ties(const load::ServeExperiment& experiment, const std::vector<load::CurvePoint>& curve, load::Load load);

}  // namespace specsim::cli
