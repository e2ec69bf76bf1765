#include "sim/serving/serve/queue_order.h"

#include "sim/foundation/rng/philox.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace specsim::serve {

namespace {

constexpr std::size_t kMostSorted = 128;  // beyond it lpm and hrrn are too slow, and the queue stays in order of arrival
// IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD and IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD
constexpr std::uint32_t kInBatchTokens = 32;

struct Waiting {
  arrivals::RequestId request = 0;
  std::vector<BlockPool::Block> hits;
  bool later = false;    // an earlier request in the queue computes a shared prefix first
  double missing = 1.0;  // tokens that are not cached
  double ratio = 0.0;    // tokens computed while it waited, over `missing`
};

using Group = std::vector<const Waiting*>;

// Depth first through the tree of cached prefixes, the branch with the most requests first; requests that end at a node come
// after its branches.
void walk(const Group& group, std::size_t depth, std::vector<arrivals::RequestId>& order) {
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

std::uint32_t random_key(arrivals::RequestId request, std::uint64_t ordering) {
  return rng::philox4x32_10({request, static_cast<std::uint32_t>(ordering), 0, 0}, rng::Key{})[0];
}

void by_prefix(QueueOrder order, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
               const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  std::vector<Waiting> all(queue.size());
  std::set<std::uint64_t> ahead;  // uncached prefixes of more than kInBatchTokens, of requests that go first
  const std::uint32_t block = kInBatchTokens / state.pool->block_tokens();
  HashSketch& watched = state.pool->watch();
  for (std::size_t i = 0; i < queue.size(); ++i) {
    all[i].request = queue[i];
    cached.find(queue[i], radix_keys(state.at(queue[i]).tokens() - 1, state), state, all[i].hits);
    // Watches the blocks that it found, and the first one that it missed: while these stay the same, it finds the same again.
    for (std::uint32_t at = 0; at <= all[i].hits.size(); ++at) watched.add(CachedBlocks::hash_of(queue[i], at, state));
    all[i].missing = static_cast<double>(state.at(queue[i]).tokens() - all[i].hits.size() * state.pool->block_tokens());
    all[i].ratio = static_cast<double>(waited(queue[i])) / all[i].missing;
    if (all[i].hits.size() * state.pool->block_tokens() > kInBatchTokens) continue;
    if ((block + 1) * state.pool->block_tokens() <= state.at(queue[i]).tokens())
      all[i].later = !ahead.insert(CachedBlocks::hash_of(queue[i], block, state)).second;
  }
  std::stable_sort(all.begin(), all.end(), [&](const Waiting& a, const Waiting& b) {
    if (a.later != b.later) return b.later;
    if (order == QueueOrder::hrrn) return a.ratio > b.ratio;
    if (order == QueueOrder::shortest_prefill_first) return a.missing < b.missing;
    return order == QueueOrder::lpm && a.hits.size() > b.hits.size();
  });
  std::vector<arrivals::RequestId> sorted;
  if (order != QueueOrder::dfs_weight) {
    for (const Waiting& one : all) sorted.push_back(one.request);
  } else {
    Group first;
    Group later;
    for (const Waiting& one : all) (one.later ? later : first).push_back(&one);
    walk(first, 0, sorted);
    walk(later, 0, sorted);
  }
  std::copy(sorted.begin(), sorted.end(), queue.begin());
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
  if (order_ == QueueOrder::random) joined_[request] = {orderings_, ++joined_count_};
}

void OrderedQueue::leave(std::deque<arrivals::RequestId>& queue) {
  if (order_ == QueueOrder::random) joined_.erase(queue.front());
  queue.pop_front();
  changed_ = true;
}

// The order is that of a stable sort at each step, also if the queue was not sorted in between. Equal keys keep their earlier
// order: by the keys of the steps before, back to the arrival of the later request, and then by arrival.
void OrderedQueue::order_at_random(std::deque<arrivals::RequestId>& queue) const {
  std::vector<std::pair<std::uint32_t, arrivals::RequestId>> all;
  all.reserve(queue.size());
  for (const arrivals::RequestId request : queue) all.emplace_back(random_key(request, orderings_), request);
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first || a.second == b.second) return a.first < b.first;
    const Joined& one = joined_.at(a.second);
    const Joined& other = joined_.at(b.second);
    for (std::uint64_t i = orderings_ - 1; i > std::max(one.ordering, other.ordering); --i)
      if (const auto x = random_key(a.second, i), y = random_key(b.second, i); x != y) return x < y;
    return one.number < other.number;
  });
  std::transform(all.begin(), all.end(), queue.begin(), [](const auto& one) { return one.second; });
}

void OrderedQueue::order(bool admits, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                         const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  if (queue.size() <= 1) return;
  switch (order_) {
    case QueueOrder::fcfs:
    case QueueOrder::lof:
    case QueueOrder::priority:
      return;
    case QueueOrder::random:
      ++orderings_;
      if (!admits) return;
      ++sorted_;
      return order_at_random(queue);
    case QueueOrder::lpm:
    case QueueOrder::dfs_weight:
    case QueueOrder::hrrn:
    case QueueOrder::shortest_prefill_first:
      if (!state.pool->caches()) return;
      if ((order_ == QueueOrder::lpm || order_ == QueueOrder::hrrn) && queue.size() > kMostSorted) return;
      // Sorting again would not change it if the same requests find the same blocks; hrrn depends on time as well.
      if (order_ != QueueOrder::hrrn && !changed_ && !state.pool->watched_changed()) return;
      changed_ = false;
      ++sorted_;
      return by_prefix(order_, waited, cached, state, queue);
  }
}

}  // namespace specsim::serve
