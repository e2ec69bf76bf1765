// The config keys of the cost model roofline.
#pragma once

#include "sim/foundation/config/fields.h"
#include "sim/hardware/latency/deployment.h"

namespace specsim::cost {

const config::Fields<Deployment>& roofline_fields();

}  // namespace specsim::cost
