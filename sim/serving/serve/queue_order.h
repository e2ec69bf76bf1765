// The order in which SGLang looks at its queue.
#pragma once

#include "sim/foundation/config/fields.h"
#include "sim/serving/serve/cached_blocks.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace specsim::serve {

enum class QueueOrder { fcfs, lpm, dfs_weight, lof, random, priority, hrrn, shortest_prefill_first };
config::Choices<QueueOrder> queue_order_words();

// Keeps a queue in its order: as if all of it were sorted before every step, by a sort that leaves equals as they stand.
class OrderedQueue {
 public:
  explicit OrderedQueue(QueueOrder order) : order_(order) {}
  // A request comes to the queue. Orders whose keys never change put it in its place; the others look at it in order().
  void join(arrivals::RequestId request, const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // The first one leaves it.
  void leave(std::deque<arrivals::RequestId>& queue);
  // Orders the queue for the admissions of a step; `admits`: there can be any. `waited`: tokens of prompts that the engine has
  // computed since the request arrived, by which hrrn measures time.
  void order(bool admits, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
             const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // How often the queue was gone through.
  [[nodiscard]] std::uint64_t sorted() const { return sorted_; }

 private:
  struct Joined {
    std::uint64_t ordering = 0;  // the last one before it came
    std::uint64_t number = 0;    // of those that came
  };
  void order_at_random(std::deque<arrivals::RequestId>& queue) const;

  QueueOrder order_;
  std::uint64_t orderings_ = 0;  // steps that asked for an order: the address of random's numbers
  std::uint64_t sorted_ = 0;
  std::uint64_t joined_count_ = 0;
  bool changed_ = false;                                    // who waits, since the queue was gone through
  std::unordered_map<arrivals::RequestId, Joined> joined_;  // for random
};

}  // namespace specsim::serve
