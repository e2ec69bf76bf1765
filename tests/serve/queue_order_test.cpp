// SGLang's queue orders: the queue that is kept in order as requests come and blocks change equals, request by request, a full
// sort at every step. An unchanged queue is not traversed.
#include "sim/serving/serve/queue_order.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace specsim::queue_order_test {

namespace {

using arrivals::RequestId;
using serve::BlockPool;
using serve::CachedBlocks;
using serve::EngineState;
using serve::kUnlimitedBlocks;
using serve::OrderedQueue;
using serve::QueueOrder;
using serve::Sequence;

constexpr std::uint32_t kBlock = 16;

// The whole queue sorted by the server's own formulas: python/sglang/srt/managers/schedule_policy.py, calc_priority().
struct Sorted {
  QueueOrder order;
  std::deque<RequestId> queue;

  struct Waiting {
    RequestId request = 0;
    std::vector<BlockPool::Block> hits;
    bool later = false;
    double missing = 1.0;
    double ratio = 0.0;
  };
  using Group = std::vector<const Waiting*>;

  static void walk(const Group& group, std::size_t depth, std::vector<RequestId>& out) {
    std::map<BlockPool::Block, Group> branches;
    Group here;
    for (const Waiting* one : group) (one->hits.size() > depth ? branches[one->hits[depth]] : here).push_back(one);
    std::vector<const Group*> largest;
    for (const auto& branch : branches) largest.push_back(&branch.second);
    std::stable_sort(largest.begin(), largest.end(), [](const Group* a, const Group* b) { return a->size() > b->size(); });
    for (const Group* one : largest) walk(*one, depth + 1, out);
    for (const Waiting* one : here) out.push_back(one->request);
  }

  void sort(const CachedBlocks& cached, const EngineState& state, const std::function<std::uint64_t(RequestId)>& waited) {
    if (queue.size() <= 1) return;
    const auto by = [&](const auto& key) {
      std::stable_sort(queue.begin(), queue.end(), [&](RequestId a, RequestId b) { return key(a) < key(b); });
    };
    if (order == QueueOrder::lof) return by([&](RequestId id) { return -std::int64_t{state.at(id).limit}; });
    if (order == QueueOrder::priority) return by([&](RequestId id) { return state.at(id).priority; });
    if (order == QueueOrder::fcfs || ((order == QueueOrder::lpm || order == QueueOrder::hrrn) && queue.size() > 128)) return;
    std::vector<Waiting> all(queue.size());
    std::set<std::uint64_t> ahead;
    const std::uint32_t block = 32 / kBlock;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      Waiting& one = all[i];
      one.request = queue[i];
      const std::uint32_t tokens = state.at(one.request).tokens();
      cached.find(one.request, tokens - 1, state, one.hits);
      one.missing = static_cast<double>(tokens - one.hits.size() * kBlock);
      one.ratio = static_cast<double>(waited(one.request)) / one.missing;
      if (one.hits.size() * kBlock <= 32 && (block + 1) * kBlock <= tokens)
        one.later = !ahead.insert(CachedBlocks::hash_of(one.request, block, state)).second;
    }
    std::stable_sort(all.begin(), all.end(), [&](const Waiting& a, const Waiting& b) {
      if (a.later != b.later) return b.later;
      if (order == QueueOrder::hrrn) return a.ratio > b.ratio;
      if (order == QueueOrder::shortest_prefill_first) return a.missing < b.missing;
      return order == QueueOrder::lpm && a.hits.size() > b.hits.size();
    });
    std::vector<RequestId> out;
    if (order == QueueOrder::dfs_weight) {
      Group first;
      Group later;
      for (const Waiting& one : all) (one.later ? later : first).push_back(&one);
      walk(first, 0, out);
      walk(later, 0, out);
    } else {
      for (const Waiting& one : all) out.push_back(one.request);
    }
    std::copy(out.begin(), out.end(), queue.begin());
  }
};

// Requests of a few prefixes, some with a unique prefix; or, if they do not `share`, all of them.
struct Requests {
  std::vector<Sequence> sequences;
  arrivals::RequestTrace workload;

  Requests(std::size_t count, std::mt19937& random, bool share = true) : sequences(count) {
    workload.hash_tokens = kBlock;
    for (std::size_t i = 0; i < count; ++i) {
      arrivals::Request request;
      const auto blocks = static_cast<std::uint32_t>(1 + random() % 6);
      request.prompt = blocks * kBlock + 1 + static_cast<std::uint32_t>(random() % 8);
      request.output = 8;
      if (random() % 4 != 0 && share) {
        request.first_hash = static_cast<std::uint32_t>(workload.hashes.size());
        request.hashes = blocks;
        std::uint64_t hash = 0;
        for (std::uint32_t b = 0; b < blocks; ++b) workload.hashes.push_back(hash = hash * 7 + 1 + random() % 3);
      }
      workload.requests.push_back(request);
      sequences[i].prompt = request.prompt;
      sequences[i].limit = static_cast<std::uint32_t>(1 + random() % 5);
      sequences[i].priority = static_cast<std::int32_t>(random() % 3);
    }
  }
};

}  // namespace

TEST_CASE("a queue kept in order is the queue sorted at every step", "[serve][queue]") {
  for (const auto& [name, order] : serve::queue_order_words().list) {
    if (order == QueueOrder::random) continue;
    for (const auto& [blocks, share] :
         {std::pair{kUnlimitedBlocks, true}, std::pair{40U, true}, std::pair{kUnlimitedBlocks, false}, std::pair{40U, false}}) {
      std::mt19937 random(static_cast<unsigned>(name.size() * 31 + blocks % 97));
      Requests requests(400, random, share);
      BlockPool pool(blocks, kBlock, true);
      EngineState state;
      state.first_sequence = requests.sequences.data();
      state.workload = &requests.workload;
      state.pool = &pool;
      CachedBlocks cached;
      std::deque<RequestId> queue;
      OrderedQueue kept(order);
      Sorted sorted{order, {}};
      std::vector<RequestId> running;
      std::uint64_t computed = 0;
      std::map<RequestId, std::uint64_t> came;
      const auto waited = [&](RequestId id) { return computed - came.at(id); };
      RequestId next = 0;
      for (int step = 0; step < 3000; ++step) {
        while (next < 400 && random() % 3 == 0) {
          came[next] = computed;
          kept.join(next, state, queue);
          sorted.queue.push_back(next++);
        }
        const bool admits = random() % 2 == 0;
        kept.order(admits, waited, cached, state, queue);
        sorted.sort(cached, state, waited);
        CAPTURE(name, blocks, share, step);
        REQUIRE(queue == sorted.queue);
        const int most = random() % 50 == 0 ? 40 : 2;
        for (int i = 0; admits && i < most && !queue.empty(); ++i) {
          const RequestId id = queue.front();
          REQUIRE(id == sorted.queue.front());
          std::vector<BlockPool::Block> hits;
          cached.find(id, requests.sequences[id].tokens() - 1, state, hits);
          const std::uint32_t wanted = pool.blocks_for(requests.sequences[id].prompt);
          if (!pool.unlimited() && wanted + hits.size() > pool.free()) break;
          kept.leave(queue);
          sorted.queue.pop_front();
          cached.begin(id, hits, state);
          cached.extend(id, wanted - static_cast<std::uint32_t>(hits.size()), state);
          cached.name(id, requests.sequences[id].prompt, state);
          computed += requests.sequences[id].prompt;
          running.push_back(id);
        }
        if (!running.empty() && random() % 4 == 0) {  // one ends, or loses its place and goes to the end of the queue
          const std::size_t at = random() % running.size();
          const RequestId id = running[at];
          running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
          cached.release(id, state);
          if (random() % 3 == 0) {
            kept.join(id, state, queue);
            sorted.queue.push_back(id);
          }
        }
      }
      CHECK(next == 400);
    }
  }
}

TEST_CASE("a queue to which nothing has happened is not gone through", "[serve][queue]") {
  std::mt19937 random(5);
  Requests requests(300, random);
  for (const auto& [name, order] : serve::queue_order_words().list) {
    BlockPool pool(kUnlimitedBlocks, kBlock, true);
    EngineState state;
    state.first_sequence = requests.sequences.data();
    state.workload = &requests.workload;
    state.pool = &pool;
    const CachedBlocks cached;
    std::deque<RequestId> queue;
    OrderedQueue kept(order);
    for (RequestId id = 0; id < 100; ++id) kept.join(id, state, queue);
    for (int step = 0; step < 1000; ++step)
      kept.order(
          false, [](RequestId id) { return std::uint64_t{id}; }, cached, state, queue);
    CAPTURE(name);
    CHECK(kept.sorted() <= (name == "hrrn" ? 1000U : 1U));  // hrrn depends on time, and has 128 requests at most
  }
}

TEST_CASE("requests without common prefixes come and go without sorting the others", "[serve][queue]") {
  std::mt19937 random(6);
  Requests requests(2000, random, false);
  for (const QueueOrder order : {QueueOrder::dfs_weight, QueueOrder::shortest_prefill_first}) {
    BlockPool pool(kUnlimitedBlocks, kBlock, true);
    EngineState state;
    state.first_sequence = requests.sequences.data();
    state.workload = &requests.workload;
    state.pool = &pool;
    const CachedBlocks cached;
    std::deque<RequestId> queue;
    OrderedQueue kept(order);
    for (RequestId id = 0; id < 2000; ++id) {
      kept.join(id, state, queue);
      kept.order(
          true, [](RequestId) { return std::uint64_t{0}; }, cached, state, queue);
      if (id % 3 == 2) kept.leave(queue);
    }
    CHECK(kept.sorted() == 0);  // mutant: all of them at each step, 1,999 times
  }
}

TEST_CASE("requests without common prefixes look for cached blocks once", "[serve][queue]") {
  for (const QueueOrder order : {QueueOrder::dfs_weight, QueueOrder::shortest_prefill_first}) {
    std::mt19937 random(7);
    Requests requests(3000, random, false);
    BlockPool pool(60, kBlock, true);
    EngineState state;
    state.first_sequence = requests.sequences.data();
    state.workload = &requests.workload;
    state.pool = &pool;
    CachedBlocks cached;
    std::deque<RequestId> queue;
    OrderedQueue kept(order);
    Sorted sorted{order, {}};
    const auto waited = [](RequestId) { return std::uint64_t{0}; };
    for (RequestId id = 0; id < 3000; ++id) {
      kept.join(id, state, queue);
      sorted.queue.push_back(id);
    }
    std::deque<RequestId> running;
    std::uint64_t retracted = 0;
    for (int step = 0; step < 1000; ++step) {
      kept.order(true, waited, cached, state, queue);
      sorted.sort(cached, state, waited);
      REQUIRE(queue == sorted.queue);
      const RequestId id = queue.front();
      kept.leave(queue);
      sorted.queue.pop_front();
      std::vector<BlockPool::Block> hits;
      cached.find(id, requests.sequences[id].tokens() - 1, state, hits);
      cached.begin(id, hits, state);
      const std::uint32_t tokens = requests.sequences[id].prompt;
      cached.extend(id, pool.blocks_for(tokens) - static_cast<std::uint32_t>(hits.size()), state);
      cached.name(id, tokens, state);
      running.push_back(id);
      if (running.size() < 6) continue;
      const RequestId ended = running.front();
      running.pop_front();
      cached.release(ended, state);
      if (step % 10 != 0) continue;
      ++retracted;
      kept.join(ended, state, queue);
      sorted.queue.push_back(ended);
    }
    CHECK(kept.sorted() == 0);
    // Retracted requests go first, before their blocks are gone. Mutant: all look again when any block changes, millions of
    // lookups.
    CHECK(retracted > 90);
    CHECK(kept.lookups() == 3000 + retracted);
  }
}

TEST_CASE("at random every order of the waiting requests is as likely, and later requests wait for the next step",
          "[serve][queue]") {
  std::mt19937 random(8);
  Requests requests(5, random, false);
  BlockPool pool(kUnlimitedBlocks, kBlock, true);
  EngineState state;
  state.first_sequence = requests.sequences.data();
  state.workload = &requests.workload;
  state.pool = &pool;
  const CachedBlocks cached;
  OrderedQueue kept(QueueOrder::random);
  constexpr int kRuns = 24000;
  std::map<std::vector<RequestId>, int> seen;
  for (int run = 0; run < kRuns; ++run) {
    std::deque<RequestId> queue;
    for (RequestId id = 0; id < 4; ++id) kept.join(id, state, queue);
    kept.order(
        true, [](RequestId) { return std::uint64_t{0}; }, cached, state, queue);
    kept.join(4, state, queue);
    std::vector<RequestId> left;
    for (int i = 0; i < 4; ++i) {
      left.push_back(queue.front());
      kept.leave(queue);
    }
    ++seen[left];
    REQUIRE(queue == std::deque<RequestId>{4});  // mutant: request 4 is drawn too
    kept.leave(queue);
  }
  CHECK(seen.size() == 24);
  double chi_squared = 0.0;
  for (const auto& [left, count] : seen) chi_squared += (count - kRuns / 24.0) * (count - kRuns / 24.0) / (kRuns / 24.0);
  CHECK(chi_squared < 49.7);  // of 23 degrees of freedom, exceeded once in 1,000. Mutant: each draw among all that have left
}

TEST_CASE("at random a step does not go through the queue", "[serve][queue]") {
  std::mt19937 random(9);
  constexpr RequestId kMany = 200'000;
  Requests requests(kMany, random, false);
  BlockPool pool(kUnlimitedBlocks, kBlock, true);
  EngineState state;
  state.first_sequence = requests.sequences.data();
  state.workload = &requests.workload;
  state.pool = &pool;
  const CachedBlocks cached;
  std::deque<RequestId> queue;
  OrderedQueue kept(QueueOrder::random);
  for (RequestId id = 0; id < kMany; ++id) kept.join(id, state, queue);
  std::set<RequestId> left;
  while (!queue.empty()) {  // mutant: hashes of all that wait, 20 billion
    kept.order(
        true, [](RequestId) { return std::uint64_t{0}; }, cached, state, queue);
    left.insert(queue.front());
    kept.leave(queue);
  }
  CHECK(left.size() == kMany);
}

}  // namespace specsim::queue_order_test
