#include "sim/serving/serve/queue_order.h"

#include "sim/foundation/rng/philox.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace specsim::serve {

namespace {

constexpr std::size_t kMostSorted = 128;      // beyond it lpm and hrrn are too dear, and the queue is taken as it came
constexpr std::uint32_t kInBatchTokens = 32;  // IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD and its twin

struct Waiting {
  arrivals::RequestId request = 0;
  std::vector<BlockPool::Block> hits;
  bool later = false;    // what it shares with one before it is to be computed first
  double missing = 1.0;  // tokens that are not cached
  double ratio = 0.0;    // tokens that it has waited for, over `missing`
};

using Group = std::vector<const Waiting*>;

// Depth first through the tree of cached prefixes, the branch with the most requests first; those that end at a node come behind
// its branches.
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

void by_prefix(QueueOrder order, const std::function<std::uint64_t(arrivals::RequestId)>& waited, const CachedBlocks& cached,
               const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  std::vector<Waiting> all(queue.size());
  std::set<std::uint64_t> ahead;  // prefixes of more than kInBatchTokens, of those that go first
  const std::uint32_t block = kInBatchTokens / state.pool->block_tokens();
  for (std::size_t i = 0; i < queue.size(); ++i) {
    all[i].request = queue[i];
    cached.find(queue[i], state.at(queue[i]).tokens() - 1, state, all[i].hits);
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

constexpr std::pair<const char*, QueueOrder> kNames[] = {{"fcfs", QueueOrder::fcfs},
                                                         {"lpm", QueueOrder::lpm},
                                                         {"dfs-weight", QueueOrder::dfs_weight},
                                                         {"lof", QueueOrder::lof},
                                                         {"random", QueueOrder::random},
                                                         {"priority", QueueOrder::priority},
                                                         {"hrrn", QueueOrder::hrrn},
                                                         {"shortest-prefill-first", QueueOrder::shortest_prefill_first}};

}  // namespace

std::vector<std::string> queue_order_names() {
  std::vector<std::string> names;
  for (const auto& one : kNames) names.emplace_back(one.first);
  return names;
}

QueueOrder queue_order(const std::string& name) {
  for (const auto& one : kNames)
    if (name == one.first) return one.second;
  return QueueOrder::fcfs;
}

void order_queue(QueueOrder order, std::uint64_t number, const std::function<std::uint64_t(arrivals::RequestId)>& waited,
                 const CachedBlocks& cached, const EngineState& state, std::deque<arrivals::RequestId>& queue) {
  const auto sort_by = [&](const auto& key) {
    std::stable_sort(queue.begin(), queue.end(), [&](arrivals::RequestId a, arrivals::RequestId b) { return key(a) < key(b); });
  };
  switch (order) {
    case QueueOrder::fcfs:
      return;
    case QueueOrder::lpm:
    case QueueOrder::dfs_weight:
    case QueueOrder::hrrn:
    case QueueOrder::shortest_prefill_first:
      if (!state.pool->caches()) return;
      if ((order == QueueOrder::lpm || order == QueueOrder::hrrn) && queue.size() > kMostSorted) return;
      return by_prefix(order, waited, cached, state, queue);
    case QueueOrder::lof:
      return sort_by([&](arrivals::RequestId id) { return -static_cast<std::int64_t>(state.at(id).limit); });
    case QueueOrder::priority:
      return sort_by([&](arrivals::RequestId id) { return state.at(id).priority; });
    case QueueOrder::random:
      return sort_by([&](arrivals::RequestId id) {
        return rng::philox4x32_10({id, static_cast<std::uint32_t>(number), 0, 0}, rng::Key{})[0];
      });
  }
}

}  // namespace specsim::serve
