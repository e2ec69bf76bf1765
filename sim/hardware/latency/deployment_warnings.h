// Warnings for the user about the estimates of a GPU and its models.
#pragma once

#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/kernel_choice.h"

#include <string>
#include <vector>

namespace specsim::cost {

// Unverified figures, borrowed measurements, types without any, drafts that do not suit their target. `target`, `draft`: the
// kernels that their passes run; nullptr if the deployment has no such model.
std::vector<std::string> deployment_warnings(const Deployment& deployment, const ModelKernels* target, const ModelKernels* draft);

}  // namespace specsim::cost
