// The config keys of the cost model roofline.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <vector>

namespace specsim::cost {

std::vector<config::Parameter> roofline_parameters();

}  // namespace specsim::cost
