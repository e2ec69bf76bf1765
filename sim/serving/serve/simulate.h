// A run: clients, replicas, and the clock that they share.
#pragma once

#include "sim/serving/arrivals/request_trace.h"
#include "sim/serving/serve/routing.h"
#include "sim/serving/serve/server.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

namespace specsim::serve {

// The clients, which decide when each request is sent. An open loop sends each request when it is due. A closed loop limits the
// requests in flight; the others wait in the client, where no server sees them. Conversations send a turn when the one before was
// answered.

class Client {
 public:
  explicit Client(const arrivals::RequestTrace& workload) : workload_(&workload), unused_(workload.concurrency) {
    if (!workload.answers_first) return;
    next_turn_.resize(workload.requests.size());
    for (std::size_t i = 0; i < workload.requests.size(); ++i)
      if (const std::uint32_t before = workload.requests[i].follows; before > 0)
        next_turn_[before - 1] = static_cast<arrivals::RequestId>(i);
    skip_answers();
  }
  // When the next request is sent; kNever if none is left, or until one in flight ends.
  [[nodiscard]] arrivals::Picoseconds next() const {
    const arrivals::Picoseconds due = first_due();
    if (!answered_.empty()) return std::min(due, answered_.top().first);
    if (due == arrivals::kNever || workload_->concurrency == 0 || unused_ > 0) return due;
    return slots_.empty() ? arrivals::kNever : std::max(slots_.front(), due);
  }
  arrivals::RequestId send() {
    ++sent_;
    if (!answered_.empty() && answered_.top().first <= first_due()) {
      const arrivals::RequestId turn = answered_.top().second;
      answered_.pop();
      return turn;
    }
    if (workload_->concurrency > 0) {
      if (unused_ > 0)
        --unused_;
      else
        slots_.pop_front();
    }
    const auto request = static_cast<arrivals::RequestId>(in_order_++);
    if (workload_->answers_first) skip_answers();
    return request;
  }
  // A request in flight ended.
  void ended(arrivals::RequestId request, arrivals::Picoseconds now) {
    if (workload_->concurrency > 0) slots_.push_back(now + workload_->think);
    if (next_turn_.empty() || next_turn_[request] == 0) return;
    const arrivals::RequestId turn = next_turn_[request];
    answered_.emplace(now + (workload_->requests[turn].due - workload_->requests[request].due), turn);
  }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  using Turn = std::pair<arrivals::Picoseconds, arrivals::RequestId>;

  [[nodiscard]] arrivals::Picoseconds first_due() const {
    return in_order_ < workload_->requests.size() ? workload_->requests[in_order_].due : arrivals::kNever;
  }
  // Skips turns that wait for an answer.
  void skip_answers() {
    while (in_order_ < workload_->requests.size() && workload_->requests[in_order_].follows > 0) ++in_order_;
  }

  const arrivals::RequestTrace* workload_;
  std::size_t sent_ = 0;
  std::size_t in_order_ = 0;                 // the next of the requests that wait for no answer
  std::uint32_t unused_;                     // places within the limit that were never used yet
  std::deque<arrivals::Picoseconds> slots_;  // when the clients whose requests ended send again, in order
  // If a turn waits for the answer before it:
  std::vector<arrivals::RequestId> next_turn_;                             // [request]; 0: none
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> answered_;  // when those turns are sent
};

// Prompts are computed by separate engines, and their caches are sent to those that decode, one after the other.
struct DisaggregatedPrefill {
  std::function<Server::Parts()> make_engine;
  std::uint32_t engines = 0;               // 0: every engine does both
  double link_ps_per_token = 0.0;          // time to transfer the cache of one prompt token
  arrivals::Picoseconds link_latency = 0;  // latency of each cache's transfer
  bool silent = false;                     // their token is dropped: the engine that decodes computes it again
};

struct RunSetting {
  DisaggregatedPrefill prefill;
  std::function<Server::Parts()> make_engine;  // for each replica
  std::uint32_t replicas = 1;
  bool in_step = false;                              // all of them begin and end their steps together because they share experts
  std::shared_ptr<const Routing> routing;            // may be nullptr for one replica
  arrivals::Picoseconds frontend = 0;                // between the client and the engine's queue
  arrivals::Picoseconds horizon = arrivals::kNever;  // the run ends there
  StepObserver* observer = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t finished)> progress;  // called from time to time
};

struct SimulationResult {
  std::vector<Sequence> sequences;        // [request]
  std::vector<std::uint32_t> replica_of;  // [request]; only if there are several replicas
  std::vector<ServerTotals> totals;       // [replica]; after them the engines that only compute prompts
  std::vector<Gap> gaps;                  // of all replicas together
  std::uint32_t largest_batch = 0;        // requests in the steps of all replicas at once
  std::uint32_t pool_blocks = 0;          // usable, of a replica
  std::uint32_t pool_tokens = 0;
  // Requests 0 to sent - 1 were sent, except for turns that still wait for an answer, whose Sequence::sent is kNever.
  std::size_t sent = 0;
  std::size_t finished = 0;
  arrivals::Picoseconds end = 0;        // when the last request ended, or the horizon
  arrivals::Picoseconds link_busy = 0;  // time that the link transferred caches, one after the other
  bool reached_end = true;              // every request was sent and ended
  bool interrupted = false;
};

// Throws BadInput at a moment at which simulated time has ended.
void check_moment(arrivals::Picoseconds now);

// Runs the engines on the requests until all have ended, the horizon is reached or `stop` is set. Throws BadInput if simulated
// time ends.
SimulationResult simulate(const arrivals::RequestTrace& workload, const RunSetting& setting);

// Share of the run in which the link between engines that compute prompts and those that decode transfers caches; at most 1, also
// if transfers are unfinished at the end.
double link_busy_share(const SimulationResult& result);

// Requests that were sent before the answer that their prompt contains was complete: no client can do that.
std::size_t early_requests(const arrivals::RequestTrace& workload, const SimulationResult& result);

}  // namespace specsim::serve
