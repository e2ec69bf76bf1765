// The memory of a deployment's fullest GPU: weights, caches, states, and slots of drafts.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/memory_budget.h"

namespace specsim::cost {

// What decoding the workload keeps of `kept`, with slots for `look_ahead` new tokens of each sequence, in the deployment's share
// of a GPU's memory, or in what the engine's own rules leave of it, or in kUsualShare where it has none.
MemoryBudget memory_of(const Deployment& deployment, const Workload& workload, int look_ahead, Kept kept);

}  // namespace specsim::cost
