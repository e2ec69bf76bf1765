// Which runs are the same.
#pragma once

#include "sim/spec/spec.h"

#include <string>
#include <vector>

namespace specsim::run {

// Names the simulation: equal for shards and resumptions of one run. Covers configs, not threads or time.
std::string identity(const std::vector<spec::Experiment>& experiments);

}  // namespace specsim::run
