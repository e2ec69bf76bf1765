#include "sim/hardware/engine/fifo_server.h"

#include <utility>

namespace specsim::engine {

FifoServer::FifoServer(EventLoop& engine, std::string lane, unsigned capacity, Priority finish_priority)
    : engine_(engine), lane_(std::move(lane)), finish_priority_(finish_priority), units_(capacity) {
  SPECSIM_CHECK(capacity > 0, "server {}", lane_);
  for (unsigned unit = capacity; unit > 0; --unit) free_units_.push_back(unit - 1);
}

void FifoServer::start(const Job& job) {
  const unsigned unit = free_units_.back();
  free_units_.pop_back();
  units_[unit] = job.on_finish;
  engine_.schedule_after(
      job.service, [this, unit] { finish(unit); }, finish_priority_);
  if (timeline_ != nullptr) timeline_->span(lanes_[unit], job.name, engine_.now(), job.service);
  if (job.on_start) job.on_start();
}

void FifoServer::finish(unsigned unit) {
  const Action on_finish = units_[unit];
  free_units_.push_back(unit);
  in_system_.down(engine_.now());
  if (!queue_.empty()) {
    const Job next = queue_.front();
    queue_.pop();
    start(next);
  }
  if (on_finish) on_finish();
}

void FifoServer::trace(Timeline& timeline) {
  timeline_ = &timeline;
  lanes_.clear();
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    lanes_.push_back(timeline.lane(units_.size() == 1 ? lane_ : fmt::format("{}/{}", lane_, unit)));
}

}  // namespace specsim::engine
