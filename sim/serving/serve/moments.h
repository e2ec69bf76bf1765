// When the next of many engines' steps ends.
#pragma once

#include "sim/serving/arrivals/request_trace.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace specsim::serve {

// The earliest of the engines' next moments, as a tournament of pairs: an update of one engine among hundreds only looks at a few
// of them.
class Moments {
 public:
  explicit Moments(std::size_t engines) {
    while (leaves_ < engines) leaves_ *= 2;
    earliest_.assign(2 * leaves_, arrivals::kNever);
  }
  void set(std::size_t engine, arrivals::Picoseconds moment) {
    std::size_t at = leaves_ + engine;
    earliest_[at] = moment;
    while (at > 1) {
      at /= 2;
      earliest_[at] = std::min(earliest_[2 * at], earliest_[2 * at + 1]);
    }
  }
  [[nodiscard]] arrivals::Picoseconds earliest() const { return earliest_[1]; }
  // The first engine whose moment is the earliest.
  [[nodiscard]] std::size_t first() const {
    std::size_t at = 1;
    while (at < leaves_) at = 2 * at + (earliest_[2 * at] == earliest_[1] ? 0 : 1);
    return at - leaves_;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<arrivals::Picoseconds> earliest_;  // [1]: of all; [2 i] and [2 i + 1] are the pair below [i]
};

}  // namespace specsim::serve
