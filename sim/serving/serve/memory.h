// The memory that a server has left for the paged cache.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/server_memory.h"
#include "sim/serving/serve/scheduler.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace specsim::serve {

// How a server divides the GPU's memory.
struct ServerMemory {
  std::optional<cost::StepLimits> profiled;
  cost::MemoryShare share = cost::MemoryShare::everything;
  bool saves_states = false;  // its prefix cache saves states of linear attention at the ends of blocks, which are larger for it
};

const std::vector<config::Parameter>& kv_parameters();
const std::vector<config::Parameter>& host_parameters();  // of its `host`

struct PoolSize {
  std::uint32_t blocks = kUnlimitedBlocks;
  std::uint32_t block_tokens = 16;
  std::optional<HostCache::Setting> host;  // the second tier of the prefix cache
};

// The pool of a server that drafts up to this many tokens, or without a draft length of one that holds the target alone.
// kUnlimitedBlocks if `kv` sets no limit.
PoolSize read_pool(const config::Arguments& kv, const cost::CostModel* cost, const ServerMemory& memory,
                   std::optional<int> draft_length, Diagnostics& diagnostics);

}  // namespace specsim::serve
