// A server that all active jobs share: a GPU whose bandwidth is divided among the running jobs.
//
// Rates. Work is measured in picoseconds at full speed. Each job has a weight and a greatest share. The full speed, 1, is
//   divided in proportion to the weights, except that no job gets more than its greatest share; the rest goes to the other jobs,
//   again in proportion. Rates change only when a job arrives or finishes, and then at once. No speed is left unused while some
//   job could take more of it.
// Order. Jobs that finish at the same moment leave together: the other jobs' rates rise first, then the finished jobs'
//   on_finish run in the order in which the jobs arrived.
// Rounding. A job finishes on the picosecond nearest to the end of its work, and remaining work is kept in double precision.
//   Timetables with dyadic shares are exact to the picosecond. The work done differs from the requested work by at most half a
//   picosecond per job plus rounding. No error is carried from one job to another.
// Cancellation: none; every request is served.
// Errors: a weight or greatest share that is not positive and finite, or a share above 1, is a failed check.
// Complexity: O(n) for n active jobs whenever one arrives or finishes, and O(n) again for each round of capped shares; one
//   pending event in all.
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

struct Share {
  double weight = 1.0;
  double most = 1.0;  // the greatest part of the full speed that the job can use
};

class SharedServer : boost::noncopyable {
 public:
  // The engine, and a timeline if there is one, must outlive the server.
  SharedServer(EventLoop& engine, std::string lane, Priority finish_priority = kNormal);

  // Starts at once. The name is for the timeline and must stay valid.
  void request(Duration work, Action on_finish = {}, Share share = {}, const char* name = "job");

  [[nodiscard]] const std::string& lane() const { return lane_; }
  [[nodiscard]] std::size_t active() const { return jobs_.size(); }
  [[nodiscard]] std::uint64_t requested() const { return requested_; }
  [[nodiscard]] std::uint64_t finished() const { return requested_ - jobs_.size(); }
  // Picoseconds with at least one job so far, and job-picoseconds in the system; exact.
  [[nodiscard]] Duration busy() const;
  [[nodiscard]] uint128 in_system_ps() const { return in_system_.area_ps(engine_.now()); }
  [[nodiscard]] double mean_in_system() const { return in_system_.mean(engine_.now()); }
  // Work requested so far, and work done: the integral of the rates, summed separately from the jobs' remainders.
  [[nodiscard]] Duration work_asked() const { return work_asked_; }
  [[nodiscard]] double work_done_ps() const;

  // From here on every job is a span, from its arrival to its end: in the first of the lanes "lane/0", "lane/1", ... that is
  // free.
  void trace(Timeline& timeline) { timeline_ = &timeline; }

 private:
  static constexpr std::size_t kNoLane = ~std::size_t{0};  // arrived before the tracing began

  struct Job {
    double remaining_ps = 0.0;
    double rate = 0.0;
    Share share;
    bool capped = false;
    Action on_finish;
    SimTime came;
    Duration work;
    std::size_t lane = kNoLane;  // the lane that the job is drawn in
    const char* name = nullptr;
  };
  // Does the work from the last change until now.
  void advance();
  // Divides the speed and schedules the next finish.
  void divide();
  void finish_due();
  std::size_t take_lane();
  void record(const Job& job);

  EventLoop& engine_;
  std::string lane_;
  Priority finish_priority_;
  std::vector<Job> jobs_;  // in the order of arrival
  std::vector<Job> leaving_;
  double total_rate_ = 0.0;
  SimTime changed_;
  EventId next_finish_;
  Level in_system_;
  Duration busy_;
  double work_done_ps_ = 0.0;
  Duration work_asked_;
  std::uint64_t requested_ = 0;
  Timeline* timeline_ = nullptr;
  std::vector<Timeline::Lane> lanes_;
  std::vector<bool> lane_taken_;
};

}  // namespace specsim::engine
