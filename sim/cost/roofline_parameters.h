// What a config may say of the cost model roofline.
#pragma once

#include "sim/config/arguments.h"

#include <vector>

namespace specsim::cost {

constexpr double kMemoryShare = 0.9;  // share of a GPU's memory that an engine uses, where nothing else is said

std::vector<config::Parameter> roofline_parameters();

}  // namespace specsim::cost
