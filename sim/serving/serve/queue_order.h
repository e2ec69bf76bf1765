// The order in which SGLang considers its queue.
#pragma once

#include "sim/foundation/config/fields.h"
#include "sim/serving/serve/cached_blocks.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace specsim::serve {

// SGLang's radix cache with a head as draft: its keys are pairs of neighbours, one fewer than the tokens (convert_to_bigram_key).
inline std::uint32_t radix_keys(std::uint32_t tokens, const EngineState& state) {
  return tokens - (state.drafts_cached && tokens > 0 ? 1 : 0);
}

enum class QueueOrder { fcfs, lpm, dfs_weight, lof, random, priority, hrrn, shortest_prefill_first };
config::Choices<QueueOrder> queue_order_words();

// Keeps a queue in its order, as if all of it were sorted before every step by a stable sort.
class OrderedQueue {
 public:
  explicit OrderedQueue(QueueOrder order) : order_(order) {}
  // A request joins the queue. Orders whose keys never change insert it at its place; the others sort in order().
  void join(arrivals::RequestId request, const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // The first request leaves the queue.
  void leave(std::deque<arrivals::RequestId>& queue);
  // Orders the queue for the admissions of a step; `admits`: there can be any. `waited`: tokens of prompts that the engine has
  // computed since the request arrived; hrrn measures time in these.
  void order(bool admits, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
             const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // How often the whole queue was sorted.
  [[nodiscard]] std::uint64_t sorted() const { return sorted_; }

  // A waiting request, and what it finds in the cache.
  struct Waiting {
    arrivals::RequestId request = 0;
    std::vector<BlockPool::Block> hits;
    double missing = 1.0;                 // tokens that are not cached
    std::optional<std::uint64_t> prefix;  // hash of its beginning, if it may wait for another request that computes the same
    bool later = false;                   // an earlier request in the queue computes that beginning first
    double ratio = 0.0;                   // tokens computed while it waited, over `missing`
  };

 private:
  struct Joined {
    std::uint64_t ordering = 0;  // the last ordering before it arrived
    std::uint64_t number = 0;    // number of its arrival
  };
  void order_at_random(std::deque<arrivals::RequestId>& queue) const;
  void order_by_prefix(const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                       const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // The entry of a request: looked up now, or before if nothing that it watches has changed since.
  const Waiting& find(arrivals::RequestId request, const CachedBlocks& cached, const EngineState& state);
  void count(const Waiting& one, bool joins);
  // Puts requests that joined since the last order at their places. False: some requests share a prefix, so all must be sorted.
  bool place_newest(const CachedBlocks& cached, const EngineState& state, std::deque<arrivals::RequestId>& queue);

  QueueOrder order_;
  std::uint64_t orderings_ = 0;  // number of orderings so far: the address of the random numbers
  std::uint64_t sorted_ = 0;
  std::uint64_t joined_count_ = 0;
  bool changed_ = false;                                    // requests that wait since the queue was last sorted
  std::unordered_map<arrivals::RequestId, Joined> joined_;  // for QueueOrder::random
  // For orders by cached prefixes: what each waiting request found, as long as nothing that they watch changes.
  std::unordered_map<arrivals::RequestId, Waiting> found_;
  std::unordered_map<std::uint64_t, std::uint32_t> prefixes_;  // how many of them have this Waiting::prefix
  std::int64_t with_hits_ = 0;                                 // of them
  std::int64_t shared_ = 0;                                    // prefixes that several of them have
  bool unshared_ = false;                                      // both were 0 when the whole queue was last sorted
};

}  // namespace specsim::serve
