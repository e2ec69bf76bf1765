// The memory of a deployment's fullest GPU: weights, caches, states, and slots of drafts.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/deployment.h"
#include "sim/hardware/latency/memory_budget.h"

namespace specsim::cost {

// Memory that decoding the workload needs for the models in `kept`, with slots for `look_ahead` new tokens per sequence. The
// budget is the deployment's share of a GPU's memory; without a share, what the engine's own rules leave; without rules,
// kUsualShare. A draft on its own GPU has a budget of that GPU: MemoryBudget::elsewhere of both models, or the one of the draft
// alone.
MemoryBudget memory_of(const Deployment& deployment, const Workload& workload, int look_ahead, Kept kept);

}  // namespace specsim::cost
