// What a server's memory leaves for the paged cache.
#pragma once

#include "sim/cost/cost_model.h"
#include "sim/cost/deployment.h"
#include "sim/serve/scheduler.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace specsim::serve {

// Bytes of one GPU beside weights and cache while vLLM V1 computes the largest step that its options allow, which it runs at its
// start to learn them: the layers' activations, or the logits of `step.requests` rows while they are sampled, whichever is more.
// With `speculative` the rejection sampler runs too, with one draft for each request whatever the draft length is.
double profiled_bytes(const cost::Deployment& deployment, const StepLimits& step, bool speculative);

// How a server divides the GPU's memory.
struct ServerMemory {
  std::optional<StepLimits> profiled;
  MemoryShare share = MemoryShare::everything;
};

const std::vector<config::Parameter>& kv_parameters();

// Blocks of the pool: of the server that drafts up to so many tokens, or without a draft length of the one that holds the target
// alone. kUnlimitedBlocks where `kv` says nothing.
std::uint32_t read_blocks(const config::Arguments& kv, const cost::CostModel* cost, const ServerMemory& memory,
                          std::optional<int> draft_length, Diagnostics& diagnostics);

}  // namespace specsim::serve
