// The cost model "roofline" without a config around it.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment.h"

#include <memory>

namespace specsim::cost {

// The cost model roofline with the engine's own figures. Where a model is left out, no pass of its role may be asked for, but a
// draft's, which then takes no time.
std::unique_ptr<CostModel> make_roofline(Deployment deployment);

}  // namespace specsim::cost
