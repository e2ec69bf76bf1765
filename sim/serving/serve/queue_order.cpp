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

using Waiting = OrderedQueue::Waiting;
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
  if (const auto at = found_.find(queue.front()); at != found_.end()) {
    count(at->second, false);
    found_.erase(at);
  }
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

void OrderedQueue::count(const Waiting& one, bool joins) {
  if (!one.hits.empty()) with_hits_ += joins ? 1 : -1;
  if (!one.prefix) return;
  std::uint32_t& alike = prefixes_[*one.prefix];
  if (joins ? ++alike == 2 : --alike == 1) shared_ += joins ? 1 : -1;
  if (alike == 0) prefixes_.erase(*one.prefix);
}

const OrderedQueue::Waiting& OrderedQueue::find(arrivals::RequestId request, const CachedBlocks& cached,
                                                const EngineState& state) {
  const auto [at, fresh] = found_.try_emplace(request);
  Waiting& one = at->second;
  if (!fresh) return one;
  one.request = request;
  const std::uint32_t tokens = state.at(request).tokens();
  const std::uint32_t block_tokens = state.pool->block_tokens();
  cached.find(request, radix_keys(tokens - 1, state), state, one.hits);
  // Watches the blocks that it found, and the first one that it missed: while these stay the same, it finds the same again.
  for (std::uint32_t block = 0; block <= one.hits.size(); ++block)
    state.pool->watched().add(CachedBlocks::hash_of(request, block, state));
  one.missing = static_cast<double>(tokens - one.hits.size() * block_tokens);
  const std::uint32_t beyond = kInBatchTokens / block_tokens;
  if (one.hits.size() * block_tokens <= kInBatchTokens && (beyond + 1) * block_tokens <= tokens)
    one.prefix = CachedBlocks::hash_of(request, beyond, state);
  count(one, true);
  return one;
}

bool OrderedQueue::place_newest(const CachedBlocks& cached, const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  std::size_t known = queue.size();
  while (known > 0 && !found_.contains(queue[known - 1])) --known;
  for (std::size_t i = known; i < queue.size(); ++i) static_cast<void>(find(queue[i], cached, state));
  if (with_hits_ > 0 || shared_ > 0) return false;
  if (order_ != QueueOrder::shortest_prefill_first) return true;
  const auto shorter = [&](arrivals::RequestId a, arrivals::RequestId b) { return found_.at(a).missing < found_.at(b).missing; };
  for (auto newest = queue.begin() + static_cast<std::ptrdiff_t>(known); newest != queue.end(); ++newest)
    std::rotate(std::upper_bound(queue.begin(), newest, *newest, shorter), newest, newest + 1);
  return true;
}

void OrderedQueue::order_by_prefix(const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
                                   const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  // Without common prefixes the keys of waiting requests never change, and only the newest ones look for their places.
  const bool same = !found_.empty() && !state.pool->watched_changed();
  if (same && unshared_ && order_ != QueueOrder::hrrn && place_newest(cached, state, queue)) return;
  ++sorted_;
  if (!same) {
    found_.clear();
    prefixes_.clear();
    with_hits_ = 0;
    shared_ = 0;
    state.pool->watch();
  }
  std::vector<Waiting> all;
  all.reserve(queue.size());
  std::set<std::uint64_t> ahead;  // uncached prefixes of more than kInBatchTokens, of requests that go first
  for (const arrivals::RequestId request : queue) {
    Waiting& one = all.emplace_back(find(request, cached, state));
    one.ratio = static_cast<double>(waited(request)) / one.missing;
    if (one.prefix) one.later = !ahead.insert(*one.prefix).second;
  }
  std::stable_sort(all.begin(), all.end(), [&](const Waiting& a, const Waiting& b) {
    if (a.later != b.later) return b.later;
    if (order_ == QueueOrder::hrrn) return a.ratio > b.ratio;
    if (order_ == QueueOrder::shortest_prefill_first) return a.missing < b.missing;
    return order_ == QueueOrder::lpm && a.hits.size() > b.hits.size();
  });
  std::vector<arrivals::RequestId> sorted;
  if (order_ != QueueOrder::dfs_weight) {
    for (const Waiting& one : all) sorted.push_back(one.request);
  } else {
    Group first;
    Group later;
    for (const Waiting& one : all) (one.later ? later : first).push_back(&one);
    walk(first, 0, sorted);
    walk(later, 0, sorted);
  }
  std::copy(sorted.begin(), sorted.end(), queue.begin());
  unshared_ = with_hits_ == 0 && shared_ == 0;
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
      return order_by_prefix(waited, cached, state, queue);
  }
}

}  // namespace specsim::serve
