// What specsim plan says of one cell.
#pragma once

#include "sim/plan/planner.h"

#include <vector>

namespace specsim::cli {

// from, 2 from, 4 from, ... up to `to`.
std::vector<double> doubling(double from, double to);

// The table by draft length, the best with its margins, break-even points, scans over batch and context, the waterfall,
// sensitivities, memory, and flags for servers.
void print_plan(const spec::Cell& cell, const plan::Plan& plan, const plan::AcceptanceCurve& curve);

}  // namespace specsim::cli
