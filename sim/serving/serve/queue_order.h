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
#include <unordered_set>
#include <utility>
#include <vector>

namespace specsim::serve {

// SGLang's radix cache with a head as draft: its keys are pairs of neighbours, one fewer than the tokens (convert_to_bigram_key).
inline std::uint32_t radix_keys(std::uint32_t tokens, const EngineState& state) {
  return tokens - (state.drafts_cached && tokens > 0 ? 1 : 0);
}

enum class QueueOrder { fcfs, lpm, dfs_weight, lof, random, priority, hrrn, shortest_prefill_first };
config::Choices<QueueOrder> queue_order_words();

// Keeps a queue in its order, as if all of it were sorted before every step by a stable sort. QueueOrder::random draws only the
// requests that leave.
class OrderedQueue {
 public:
  explicit OrderedQueue(QueueOrder order) : order_(order) {}
  // A request joins the queue. Orders whose keys never change insert it at its place; the others sort in order().
  void join(arrivals::RequestId request, const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // The first request leaves the queue. Between two orders only requests leave that the first one ordered.
  void leave(std::deque<arrivals::RequestId>& queue);
  // Orders the queue for the admissions of a step; `admits`: there can be any. `waited`: tokens of prompts that the engine has
  // computed since the request arrived; hrrn measures time in these.
  void order(bool admits, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
             const EngineState& state, std::deque<arrivals::RequestId>& queue);
  // How often the whole queue was sorted.
  [[nodiscard]] std::uint64_t sorted() const { return sorted_; }
  // How often a request looked for its blocks.
  [[nodiscard]] std::uint64_t lookups() const { return lookups_; }

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
  // Brings a random one of the first shuffled_ requests to the front of the queue.
  void draw_next(std::deque<arrivals::RequestId>& queue);
  void order_by_prefix(const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                       const EngineState& state, std::deque<arrivals::RequestId>& queue);
  void find(arrivals::RequestId request, const CachedBlocks& cached, const EngineState& state);
  // Watches the blocks that the request found, and the first one that it missed: while these stay the same, it finds the same.
  void watch(const Waiting& one, const EngineState& state);
  // Forgets what requests found whose watched blocks changed.
  void forget_changed(BlockPool& pool);
  void count(const Waiting& one, bool joins);
  // Puts the requests of unknown_ at their places in a queue that is otherwise in order of uncached tokens.
  void place_unknown(std::deque<arrivals::RequestId>& queue) const;
  // Puts requests with cached blocks, in the order of dfs-weight, before the others, if no request waits for another's prefix.
  void hits_first(std::deque<arrivals::RequestId>& queue) const;
  void sort(const std::function<std::uint64_t(arrivals::RequestId)>& waited, std::deque<arrivals::RequestId>& queue);

  QueueOrder order_;
  std::uint64_t sorted_ = 0;
  std::uint64_t lookups_ = 0;
  bool changed_ = false;  // requests that wait since the queue was last sorted
  // For QueueOrder::random: the requests at the front that were waiting at the last order.
  std::size_t shuffled_ = 0;
  std::uint64_t draws_ = 0;  // so far: the address of the random numbers
  // For orders by cached prefixes: what each waiting request found, as long as nothing that it watches changes, and the requests
  // that must look (again).
  std::unordered_map<arrivals::RequestId, Waiting> found_;
  std::unordered_set<arrivals::RequestId> unknown_;
  // Requests by the contents that they watch, and some that no longer watch them.
  std::unordered_map<std::uint64_t, std::vector<arrivals::RequestId>> watchers_;
  std::size_t watches_ = 0;                                    // entries added to watchers_ since it was last built
  std::size_t live_watches_ = 0;                               // entries that found_ needs
  std::unordered_map<std::uint64_t, std::uint32_t> prefixes_;  // how many of found_ have this Waiting::prefix
  std::unordered_set<arrivals::RequestId> with_hits_;          // those of found_ with cached blocks
  std::int64_t shared_ = 0;                                    // prefixes that several of found_ have
  bool unshared_ = true;                                       // there were none when the queue was last ordered
};

}  // namespace specsim::serve
