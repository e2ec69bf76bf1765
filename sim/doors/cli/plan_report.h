// The output of specsim plan for one workload, and for many.
#pragma once

#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/planned.h"

#include <string>
#include <vector>

namespace specsim::cli {

void print_advice(const plan::Planned& planned, const plan::Advice& advice, bool verbose);

// A line per workload: the best draft length, and the speedups of the draft lengths that fit on a line.
void print_planned(const std::vector<plan::Planned>& planned);

}  // namespace specsim::cli
