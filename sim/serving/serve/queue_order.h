// The order in which SGLang looks at its queue.
#pragma once

#include "sim/serving/serve/cached_blocks.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace specsim::serve {

enum class QueueOrder { fcfs, lpm, dfs_weight, lof, random, priority, hrrn, shortest_prefill_first };
std::vector<std::string> queue_order_names();
QueueOrder queue_order(const std::string& name);

// Orders the queue, which is in order of arrival or as it was ordered before. `number` tells this call from others, for its
// random numbers. `waited`: tokens of prompts that the engine has computed since the request arrived, by which hrrn measures
// time.
void order_queue(QueueOrder order, std::uint64_t number, const std::function<std::uint64_t(arrivals::RequestId)>& waited,
                 const CachedBlocks& cached, const EngineState& state, std::deque<arrivals::RequestId>& queue);

}  // namespace specsim::serve
