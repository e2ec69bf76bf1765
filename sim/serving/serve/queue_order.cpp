#include "sim/serving/serve/queue_order.h"

#include "sim/foundation/rng/philox.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace specsim::serve {

namespace {

constexpr std::size_t kMostSorted = 128;  // beyond it lpm and hrrn are too slow, and the queue stays in order of arrival
// IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD and IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD
constexpr std::uint32_t kInBatchTokens = 32;
constexpr std::size_t kFewWatches = 1U << 16U;  // watchers_ is rebuilt when it has this many more than twice those needed

using Waiting = OrderedQueue::Waiting;
using Group = std::vector<const Waiting*>;

// Depth first through the tree of cached prefixes, the branch with the most requests first; requests that end at a node come
// after its branches.
void walk(const Group& group, std::size_t depth, std::vector<arrivals::RequestId>& order) {
  if (group.size() == 1) {
    order.push_back(group.front()->request);
    return;
  }
  std::map<BlockPool::Block, Group> branches;
  Group here;
  for (const Waiting* const one : group)
    if (one->hits.size() > depth)
      branches[one->hits[depth]].push_back(one);
    else
      here.push_back(one);
  std::vector<const Group*> sorted;
  for (const auto& branch : branches) sorted.push_back(&branch.second);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Group* a, const Group* b) { return a->size() > b->size(); });
  for (const Group* const one : sorted) walk(*one, depth + 1, order);
  for (const Waiting* const one : here) order.push_back(one->request);
}

// The key in orders whose keys never change, smaller ones first.
std::int64_t constant_key(QueueOrder order, arrivals::RequestId request, const EngineState& state) {
  return order == QueueOrder::lof ? -static_cast<std::int64_t>(state.at(request).limit) : state.at(request).priority;
}

}  // namespace

config::Choices<QueueOrder> queue_order_words() {
  return config::one_of<QueueOrder>({{"fcfs", QueueOrder::fcfs},
                                     {"lpm", QueueOrder::lpm},
                                     {"dfs-weight", QueueOrder::dfs_weight},
                                     {"lof", QueueOrder::lof},
                                     {"random", QueueOrder::random},
                                     {"priority", QueueOrder::priority},
                                     {"hrrn", QueueOrder::hrrn},
                                     {"shortest-prefill-first", QueueOrder::shortest_prefill_first}});
}

void OrderedQueue::join(arrivals::RequestId request, const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  if (order_ == QueueOrder::lof || order_ == QueueOrder::priority) {
    const auto before = [&](std::int64_t key, arrivals::RequestId one) { return key < constant_key(order_, one, state); };
    queue.insert(std::upper_bound(queue.begin(), queue.end(), constant_key(order_, request, state), before), request);
    return;
  }
  queue.push_back(request);
  changed_ = true;
  if (order_ != QueueOrder::random && order_ != QueueOrder::fcfs) unknown_.insert(request);
}

void OrderedQueue::leave(std::deque<arrivals::RequestId>& queue) {
  const arrivals::RequestId request = queue.front();
  queue.pop_front();
  changed_ = true;
  unknown_.erase(request);
  if (const auto at = found_.find(request); at != found_.end()) {
    count(at->second, false);
    found_.erase(at);
  }
  if (shuffled_ > 0 && --shuffled_ > 1) draw_next(queue);
}

// One step of a shuffle: SGLang shuffles its whole queue, of which only requests that leave matter.
void OrderedQueue::draw_next(std::deque<arrivals::RequestId>& queue) {
  const auto words =
      rng::philox4x32_10({static_cast<std::uint32_t>(draws_), static_cast<std::uint32_t>(draws_ >> 32U), 0, 0}, rng::Key{});
  ++draws_;
  const double uniform = 0x1p-53 * static_cast<double>(((std::uint64_t{words[0]} << 32U) | words[1]) >> 11U);
  std::swap(queue.front(), queue[static_cast<std::size_t>(uniform * static_cast<double>(shuffled_))]);
}

void OrderedQueue::count(const Waiting& one, bool joins) {
  if (joins)
    live_watches_ += one.hits.size() + 1;
  else
    live_watches_ -= one.hits.size() + 1;
  if (!one.hits.empty()) {
    if (joins)
      with_hits_.insert(one.request);
    else
      with_hits_.erase(one.request);
  }
  if (!one.prefix) return;
  std::uint32_t& alike = prefixes_[*one.prefix];
  if (joins ? ++alike == 2 : --alike == 1) shared_ += joins ? 1 : -1;
  if (alike == 0) prefixes_.erase(*one.prefix);
}

void OrderedQueue::find(arrivals::RequestId request, const CachedBlocks& cached, const EngineState& state) {
  ++lookups_;
  Waiting& one = found_[request];
  one.request = request;
  const std::uint32_t tokens = state.at(request).tokens();
  const std::uint32_t block_tokens = state.pool->block_tokens();
  cached.find(request, radix_keys(tokens - 1, state), state, one.hits);
  one.missing = static_cast<double>(tokens - one.hits.size() * block_tokens);
  const std::uint32_t beyond = kInBatchTokens / block_tokens;
  if (one.hits.size() * block_tokens <= kInBatchTokens && (beyond + 1) * block_tokens <= tokens)
    one.prefix = CachedBlocks::hash_of(request, beyond, state);
  count(one, true);
  watch(one, state);
}

void OrderedQueue::watch(const Waiting& one, const EngineState& state) {
  watches_ += one.hits.size() + 1;
  for (std::uint32_t block = 0; block <= one.hits.size(); ++block) {
    const std::uint64_t hash = CachedBlocks::hash_of(one.request, block, state);
    watchers_[hash].push_back(one.request);
    state.pool->watched().add(hash);
  }
}

void OrderedQueue::forget_changed(BlockPool& pool) {
  for (const std::uint64_t hash : pool.changed()) {
    const auto watchers = watchers_.find(hash);
    if (watchers == watchers_.end()) continue;
    for (const arrivals::RequestId request : watchers->second) {
      const auto at = found_.find(request);
      if (at == found_.end()) continue;
      count(at->second, false);
      found_.erase(at);
      unknown_.insert(request);
    }
    watchers_.erase(watchers);
  }
  pool.changed().clear();
}

void OrderedQueue::place_unknown(std::deque<arrivals::RequestId>& queue) const {
  struct Placed {
    arrivals::RequestId request;
    double missing;
    std::size_t place;  // number of the others before it
  };
  std::vector<std::size_t> at;  // most have joined at the end
  for (std::size_t i = queue.size(); at.size() < unknown_.size();)
    if (unknown_.contains(queue[--i])) at.push_back(i);
  if (at.empty()) return;
  std::vector<Placed> placed;
  std::size_t others = at.back();
  for (std::size_t i = others; i < queue.size(); ++i) {
    if (!at.empty() && at.back() == i) {
      placed.push_back({queue[i], found_.at(queue[i]).missing, others});
      at.pop_back();
    } else {
      queue[others++] = queue[i];
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.missing < b.missing; });
  // Of requests with equally many uncached tokens, those that were before it stay before it.
  const auto end = queue.begin() + static_cast<std::ptrdiff_t>(others);
  for (Placed& one : placed) {
    const auto first = std::lower_bound(queue.begin(), end, one.missing, [&](arrivals::RequestId other, double missing) {
      return found_.at(other).missing < missing;
    });
    const auto last = std::upper_bound(
        first, end, one.missing, [&](double missing, arrivals::RequestId other) { return missing < found_.at(other).missing; });
    one.place =
        std::clamp(one.place, static_cast<std::size_t>(first - queue.begin()), static_cast<std::size_t>(last - queue.begin()));
  }
  std::size_t to = queue.size();
  for (; !placed.empty(); placed.pop_back()) {
    while (others > placed.back().place) queue[--to] = queue[--others];
    queue[--to] = placed.back().request;
  }
}

void OrderedQueue::hits_first(std::deque<arrivals::RequestId>& queue) const {
  Group hits;
  std::vector<arrivals::RequestId> others;
  for (std::size_t i = 0; hits.size() < with_hits_.size(); ++i) {
    if (with_hits_.contains(queue[i]))
      hits.push_back(&found_.at(queue[i]));
    else
      others.push_back(queue[i]);
  }
  std::vector<arrivals::RequestId> sorted;
  walk(hits, 0, sorted);
  std::copy(others.begin(), others.end(), std::copy(sorted.begin(), sorted.end(), queue.begin()));
}

void OrderedQueue::sort(const std::function<std::uint64_t(arrivals::RequestId)>& waited, std::deque<arrivals::RequestId>& queue) {
  ++sorted_;
  Group all;
  all.reserve(queue.size());
  std::unordered_set<std::uint64_t> ahead;  // uncached prefixes of more than kInBatchTokens, of requests that go first
  for (const arrivals::RequestId request : queue) {
    Waiting& one = found_.at(request);
    if (order_ == QueueOrder::hrrn) one.ratio = static_cast<double>(waited(request)) / one.missing;
    one.later = one.prefix && !ahead.insert(*one.prefix).second;
    all.push_back(&one);
  }
  std::stable_sort(all.begin(), all.end(), [&](const Waiting* a, const Waiting* b) {
    if (a->later != b->later) return b->later;
    if (order_ == QueueOrder::hrrn) return a->ratio > b->ratio;
    if (order_ == QueueOrder::shortest_prefill_first) return a->missing < b->missing;
    return order_ == QueueOrder::lpm && a->hits.size() > b->hits.size();
  });
  if (order_ != QueueOrder::dfs_weight) {
    std::transform(all.begin(), all.end(), queue.begin(), [](const Waiting* one) { return one->request; });
    return;
  }
  const auto later = std::find_if(all.begin(), all.end(), [](const Waiting* one) { return one->later; });
  std::vector<arrivals::RequestId> sorted;
  walk({all.begin(), later}, 0, sorted);
  walk({later, all.end()}, 0, sorted);
  std::copy(sorted.begin(), sorted.end(), queue.begin());
}

void OrderedQueue::order_by_prefix(const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                                   const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  if (watches_ > 2 * live_watches_ + kFewWatches) {
    watchers_.clear();
    watches_ = 0;
    state.pool->watched().clear();
    for (const auto& [request, one] : found_) watch(one, state);
  }
  for (const arrivals::RequestId request : unknown_) find(request, cached, state);
  const bool was_unshared = std::exchange(unshared_, shared_ == 0);
  // Without common prefixes no request waits for another, and the keys of the other waiting requests are the same as before.
  if (unshared_ && order_ == QueueOrder::shortest_prefill_first && was_unshared)
    place_unknown(queue);
  else if (unshared_ && order_ == QueueOrder::dfs_weight)
    hits_first(queue);
  else if (!(unshared_ && order_ == QueueOrder::lpm && with_hits_.empty()))
    sort(waited, queue);
  unknown_.clear();
}

void OrderedQueue::order(bool admits, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                         const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  shuffled_ = 0;
  forget_changed(*state.pool);
  if (queue.size() <= 1) return;
  switch (order_) {
    case QueueOrder::fcfs:
    case QueueOrder::lof:
    case QueueOrder::priority:
      return;
    case QueueOrder::random:
      if (!admits) return;
      shuffled_ = queue.size();
      return draw_next(queue);
    case QueueOrder::lpm:
    case QueueOrder::dfs_weight:
    case QueueOrder::hrrn:
    case QueueOrder::shortest_prefill_first:
      if (!state.pool->caches()) return;
      if ((order_ == QueueOrder::lpm || order_ == QueueOrder::hrrn) && queue.size() > kMostSorted) return;
      // Sorting again would not change it if the same requests find the same blocks; hrrn depends on time as well.
      if (order_ != QueueOrder::hrrn && !changed_ && unknown_.empty()) return;
      changed_ = false;
      return order_by_prefix(waited, cached, state, queue);
  }
}

}  // namespace specsim::serve
