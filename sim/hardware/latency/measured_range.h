// Passes beyond what kernels were measured with.
#pragma once

#include "sim/hardware/latency/model_latency.h"

#include <string>
#include <vector>

namespace specsim::cost {

// In which way the pass is larger than the kernels that its fits were made from, a line each. What a workload moves is looked at:
// rows, caches, messages, tokens of experts; not the model's widths, which every pass of it has.
std::vector<std::string> beyond_measured_range(const ModelLatency& latency, const Pass& pass);

}  // namespace specsim::cost
