// A server with a fixed number of units and one queue, first come, first served: a GPU, a stream, a pool of slots.
//
// Order. A request starts at once if a unit is free, else when it is at the head of the queue and a unit becomes free; none
//   overtakes another. When a job finishes, the next one starts first (its on_start runs) and then the finished job's on_finish
//   runs: a request made there queues after those who wait. Jobs that finish at the same moment finish in the order of their
//   starts; other events at that moment are ordered by the priority given to the server.
// Cancellation: none; every request is served.
// Errors: a capacity of 0 is a failed check.
// Complexity: O(1) per request plus its one event; memory is allocated only when the queue is longer than ever before.
#pragma once

#include "sim/foundation/base/sim_time.h"
#include "sim/foundation/base/wide.h"
#include "sim/hardware/engine/event_loop.h"
#include "sim/hardware/engine/level.h"
#include "sim/hardware/engine/timeline.h"

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::engine {

// A first-in-first-out queue in one growing array: no allocation unless it is longer than ever before (std::deque allocates
// as it moves along).

template <class T>
class Ring {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  // Only when not empty.
  [[nodiscard]] const T& front() const { return items_[head_]; }
  void push(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(head_ + size_++) & (items_.size() - 1)] = item;
  }
  void pop() {
    head_ = (head_ + 1) & (items_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
  }

  std::vector<T> items_;  // size is a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

class FifoServer : boost::noncopyable {
 public:
  // The engine, and a timeline if there is one, must outlive the server.
  FifoServer(EventLoop& engine, std::string lane, unsigned capacity = 1, Priority finish_priority = kNormal);

  // Requests `service` time of one unit. The name is for the timeline and must stay valid.
  void request(Duration service, Action on_finish = {}, Action on_start = {}, const char* name = "job") {
    in_system_.up(engine_.now());
    ++requested_;
    const Job job{service, on_finish, on_start, name};
    if (free_units_.empty())
      queue_.push(job);
    else
      start(job);
  }

  [[nodiscard]] const std::string& lane() const { return lane_; }
  [[nodiscard]] unsigned capacity() const { return static_cast<unsigned>(units_.size()); }
  [[nodiscard]] std::uint64_t in_system() const { return in_system_.count(); }
  [[nodiscard]] std::uint64_t requested() const { return requested_; }
  [[nodiscard]] std::uint64_t finished() const { return requested_ - in_system_.count(); }
  // Job-picoseconds spent in the system so far, exact.
  [[nodiscard]] uint128 in_system_ps() const { return in_system_.area_ps(engine_.now()); }
  [[nodiscard]] double mean_in_system() const { return in_system_.mean(engine_.now()); }

  // From here on every service is a span, in the lane of this name, or with several units in "lane/0", "lane/1", ...
  void trace(Timeline& timeline);

 private:
  struct Job {
    Duration service;
    Action on_finish;
    Action on_start;
    const char* name = nullptr;
  };
  void start(const Job& job);
  void finish(unsigned unit);

  EventLoop& engine_;
  std::string lane_;
  Priority finish_priority_;
  std::vector<Action> units_;  // what to do when the job on the unit has finished
  std::vector<unsigned> free_units_;
  Ring<Job> queue_;
  Level in_system_;
  std::uint64_t requested_ = 0;
  Timeline* timeline_ = nullptr;
  std::vector<Timeline::Lane> lanes_;
};

}  // namespace specsim::engine
