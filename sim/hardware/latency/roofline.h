// The cost model "roofline" without a config.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment.h"

#include <memory>

namespace specsim::cost {

// The cost model roofline with the engine's own figures. A model may be left out; passes of its role must then not be requested.
// The exception is the draft, whose passes then take no time.
std::unique_ptr<CostModel> make_roofline(Deployment deployment);

}  // namespace specsim::cost
