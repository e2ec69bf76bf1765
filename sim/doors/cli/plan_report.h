// The output of specsim plan for one workload, and for many.
#pragma once

#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/engines.h"
#include "sim/answers/plan/planned.h"

#include <string>
#include <vector>

namespace specsim::cli {

// Prints the conditions that a command does not show, and without which its server may not start.
void print_needs(const plan::EngineCommand& command);

void print_advice(const plan::Planned& planned, const plan::Advice& advice, bool verbose);

// A line per workload: the best draft length, and the speedups of the draft lengths that fit on a line.
void print_planned(const std::vector<plan::Planned>& planned);

}  // namespace specsim::cli
