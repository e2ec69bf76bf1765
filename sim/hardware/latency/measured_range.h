// Passes beyond the measured range of their kernels.
#pragma once

#include "sim/hardware/latency/model_latency.h"

#include <string>
#include <vector>

namespace specsim::cost {

// In which ways the pass exceeds the measured range of its kernels, one line each. Only what depends on the workload is checked:
// rows, caches, messages, tokens of experts. The model's widths are not, since every pass has them.
std::vector<std::string> beyond_measured_range(const ModelLatency& latency, const Pass& pass);

}  // namespace specsim::cost
