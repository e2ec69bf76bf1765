// A count that changes over simulated time, and its integral: how many jobs, and how many job-picoseconds. Both are whole numbers
// and therefore exact; Little's law holds on a finite path to the last picosecond.
#pragma once

#include "sim/foundation/base/sim_time.h"
#include "sim/foundation/base/wide.h"

#include <cstdint>

namespace specsim::engine {

class Level {
 public:
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Times must not decrease: a failed check.
  void up(SimTime now) {
    pass(now);
    ++count_;
  }
  void down(SimTime now) {
    SPECSIM_CHECK(count_ > 0, "now {} ps: a level below 0", now.ps());
    pass(now);
    --count_;
  }
  // The integral from the start to `now`, in counts times picoseconds.
  [[nodiscard]] uint128 area_ps(SimTime now) const {
    return area_ps_ + uint128{count_} * static_cast<std::uint64_t>((now - changed_).ps());
  }
  // The mean count from the start to `now`; 0 at the start.
  [[nodiscard]] double mean(SimTime now) const {
    return now.ps() == 0 ? 0.0 : static_cast<double>(area_ps(now)) / static_cast<double>(now.ps());
  }

 private:
  void pass(SimTime now) {
    area_ps_ = area_ps(now);
    changed_ = now;
  }
  std::uint64_t count_ = 0;
  uint128 area_ps_ = 0;
  SimTime changed_;
};

}  // namespace specsim::engine
