// The comparisons of a sweep that are within the latency model's error.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The loads at which TPOT or output throughput with and without speculation differ by less than the standard error of the
// comparison (load::comparison_error). "" if there are none, or if the cost model states no error.
std::string latency_ties(const load::ServeExperiment& experiment, const std::vector<load::CurvePoint>& curve, load::Load load);

}  // namespace specsim::cli
