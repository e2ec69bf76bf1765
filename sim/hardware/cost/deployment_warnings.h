// What a user should know before trusting the prices of a GPU and its models.
#pragma once

#include "sim/hardware/cost/deployment.h"
#include "sim/hardware/cost/pass_kernels.h"

#include <string>
#include <vector>

namespace specsim::cost {

// Unverified figures, borrowed measurements, types without any, drafts that do not suit their target. `kernels`: the fits that
// price the passes; nullptr for the data sheet's formula.
std::vector<std::string> deployment_warnings(const Deployment& deployment, const PassKernels* kernels);

}  // namespace specsim::cost
