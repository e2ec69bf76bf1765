// The clients, which decide when each request is sent. An open loop sends each request when it is due. A closed loop limits the
// requests in flight; the others wait in the client, where no server sees them. Conversations send a turn when the one before was
// answered.
#pragma once

#include "sim/serving/arrivals/request_trace.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace specsim::serve {

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

}  // namespace specsim::serve
