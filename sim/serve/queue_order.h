// In which order SGLang looks at its queue.
#pragma once

#include "sim/serve/cached_blocks.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace specsim::serve {

enum class QueueOrder { fcfs, lpm, dfs_weight, lof, random, priority };
std::vector<std::string> queue_order_names();
QueueOrder queue_order(const std::string& name);

// `number`: of the ordering, which random numbers depend on. `queue` is in order of arrival where none was made before.
void order_queue(QueueOrder order, std::uint64_t number, const CachedBlocks& cached, const EngineState& state,
                 std::deque<RequestId>& queue);

}  // namespace specsim::serve
