// One direction of a link: messages are transmitted one after the other and arrive a fixed latency later.
//
// Order. A message starts when it has been sent and every earlier one has left. Its transmission takes bytes / bandwidth,
//   rounded to the nearest picosecond. It is delivered `latency` after its last byte left. Deliveries come in the order of
//   sending, also when they fall on the same picosecond.
// Cancellation: none; every message arrives.
// Errors: a bandwidth that is not positive and finite is a failed check, as is a delivery past the end of SimTime.
// Complexity: O(1) per message plus its one event.
#pragma once

#include "sim/foundation/base/sim_time.h"
#include "sim/hardware/engine/event_loop.h"
#include "sim/hardware/engine/timeline.h"

#include <boost/core/noncopyable.hpp>

#include <cstdint>
#include <string>

namespace specsim::engine {

class Link : boost::noncopyable {
 public:
  // The engine, and a timeline if there is one, must outlive the link.
  Link(EventLoop& engine, std::string lane, Duration latency, double bytes_per_second, Priority delivery_priority = kNormal);

  // Returns when it will be delivered. The name is for the timeline and must stay valid.
  SimTime send(std::uint64_t bytes, Action on_delivery = {}, const char* name = "message");

  [[nodiscard]] const std::string& lane() const { return lane_; }
  // How long the bytes occupy the link.
  [[nodiscard]] Duration transmission(std::uint64_t bytes) const {
    return Duration::from_ps(static_cast<double>(bytes) * 1e12 / bytes_per_second_);
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  // Time spent transmitting so far.
  [[nodiscard]] Duration busy() const;

  // From here on every transmission is a span in the lane of this name. The latency is an argument of the span, not part of its
  // length.
  void trace(Timeline& timeline);

 private:
  EventLoop& engine_;
  std::string lane_;
  Duration latency_;
  double bytes_per_second_;
  Priority delivery_priority_;
  SimTime free_at_;        // when everything sent so far has been transmitted; may be in the past
  Duration transmitting_;  // of everything sent so far
  std::uint64_t sent_ = 0;
  Timeline* timeline_ = nullptr;
  Timeline::Lane timeline_lane_{};
};

}  // namespace specsim::engine
