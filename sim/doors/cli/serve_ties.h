// How wrong the prices of a run may be, and which comparisons of a sweep they leave open.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"

#include <string>
#include <vector>

namespace specsim::cli {

// The loads at which TPOT or output throughput with and without speculation differ by less than the standard error of the prices
// (plan::price_noise) of a round at each server's mean batch; "" where there are none, or the cost model claims no error.
std::string price_ties(const load::ServeExperiment& experiment, const std::vector<load::CurvePoint>& curve, load::Load load);

// The standard error of the prices of a round at the mean batch of one run, and of how it compares with the plain server's where
// `plain` is not nullptr; "" where the cost model claims no error.
std::string price_errors(const load::ServeExperiment& experiment, const serve::Summary& own, const serve::Summary* plain);

}  // namespace specsim::cli
