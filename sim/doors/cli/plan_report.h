// What specsim plan prints of one workload, and of many.
#pragma once

#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/planned.h"

#include <string>
#include <vector>

namespace specsim::cli {

void print_advice(const plan::Planned& planned, const plan::Advice& advice, bool verbose);

// A line for each workload: the best draft length, and the speedups of all that are few enough to show.
void print_planned(const std::vector<plan::Planned>& planned);

}  // namespace specsim::cli
