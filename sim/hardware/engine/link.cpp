#include "sim/hardware/engine/link.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace specsim::engine {

Link::Link(EventLoop& engine, std::string lane, Duration latency, double bytes_per_second, Priority delivery_priority)
    : engine_(engine),
      lane_(std::move(lane)),
      latency_(latency),
      bytes_per_second_(bytes_per_second),
      delivery_priority_(delivery_priority) {
  SPECSIM_CHECK(bytes_per_second > 0.0 && std::isfinite(bytes_per_second), "link {}: {} bytes/s", lane_, bytes_per_second);
}

SimTime Link::send(std::uint64_t bytes, Action on_delivery, const char* name) {
  const SimTime start = std::max(free_at_, engine_.now());
  const Duration duration = transmission(bytes);
  const SimTime delivery = start + duration + latency_;
  free_at_ = start + duration;
  transmitting_ += duration;
  ++sent_;
  if (on_delivery) engine_.schedule_at(delivery, on_delivery, delivery_priority_);
  if (timeline_ != nullptr)
    timeline_->span(timeline_lane_, name, start, duration,
                    {{"bytes", static_cast<std::int64_t>(bytes)}, {"latency_ps", latency_.ps()}});
  return delivery;
}

// The transmissions that remain after now form one stretch without gaps, because all of their messages were sent by now.
Duration Link::busy() const { return free_at_ > engine_.now() ? transmitting_ - (free_at_ - engine_.now()) : transmitting_; }

void Link::trace(Timeline& timeline) {
  timeline_ = &timeline;
  timeline_lane_ = timeline.lane(lane_);
}

}  // namespace specsim::engine
