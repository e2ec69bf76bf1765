// The clients: when each request is sent. An open loop sends what is due; a closed one has a limit of requests in flight, and the
// rest wait in the client, which no server sees.
#pragma once

#include "sim/serve/workload.h"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace specsim::serve {

class Client {
 public:
  explicit Client(const Workload& workload) : workload_(&workload), unused_(workload.concurrency) {}
  // When the next request is sent; kNever where none is left, or until one in flight ends.
  [[nodiscard]] Picoseconds next() const {
    if (sent_ == workload_->requests.size()) return kNever;
    const Picoseconds due = workload_->requests[sent_].due;
    if (workload_->concurrency == 0 || unused_ > 0) return due;
    return slots_.empty() ? kNever : std::max(slots_.front(), due);
  }
  RequestId send() {
    if (workload_->concurrency > 0) {
      if (unused_ > 0)
        --unused_;
      else
        slots_.pop_front();
    }
    return static_cast<RequestId>(sent_++);
  }
  // A request in flight ended.
  void ended(Picoseconds now) {
    if (workload_->concurrency > 0) slots_.push_back(now + workload_->think);
  }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  const Workload* workload_;
  std::size_t sent_ = 0;
  std::uint32_t unused_;           // places within the limit that were never used yet
  std::deque<Picoseconds> slots_;  // when one that ended may be followed by the next, in order
};

}  // namespace specsim::serve
