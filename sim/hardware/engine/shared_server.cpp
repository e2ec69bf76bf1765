#include "sim/hardware/engine/shared_server.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace specsim::engine {

namespace {

// Halves, common when two jobs share, round to the even picosecond: always rounding them up would accumulate an error.
double nearest(double ps) { return std::nearbyint(std::max(ps, 0.0)); }

}  // namespace

SharedServer::SharedServer(EventLoop& engine, std::string lane, Priority finish_priority)
    : engine_(engine), lane_(std::move(lane)), finish_priority_(finish_priority), changed_(engine.now()) {}

void SharedServer::request(Duration work, Action on_finish, Share share, const char* name) {
  SPECSIM_CHECK(share.weight > 0.0 && std::isfinite(share.weight) && share.most > 0.0 && share.most <= 1.0,
                "server {}, now {} ps: weight {}, greatest share {}", lane_, engine_.now().ps(), share.weight, share.most);
  advance();
  in_system_.up(engine_.now());
  ++requested_;
  work_asked_ += work;
  jobs_.push_back({.remaining_ps = static_cast<double>(work.ps()),
                   .rate = 0.0,
                   .share = share,
                   .capped = false,
                   .on_finish = on_finish,
                   .came = engine_.now(),
                   .work = work,
                   .lane = timeline_ != nullptr ? take_lane() : kNoLane,
                   .name = name});
  divide();
}

Duration SharedServer::busy() const { return jobs_.empty() ? busy_ : busy_ + (engine_.now() - changed_); }

double SharedServer::work_done_ps() const {
  return work_done_ps_ + total_rate_ * static_cast<double>((engine_.now() - changed_).ps());
}

void SharedServer::advance() {
  const Duration passed = engine_.now() - changed_;
  changed_ = engine_.now();
  if (jobs_.empty() || passed == Duration()) return;
  busy_ += passed;
  const auto passed_ps = static_cast<double>(passed.ps());
  for (Job& job : jobs_) job.remaining_ps -= job.rate * passed_ps;
  work_done_ps_ += total_rate_ * passed_ps;
}

void SharedServer::divide() {
  engine_.cancel(std::exchange(next_finish_, EventId()));
  total_rate_ = 0.0;
  if (jobs_.empty()) return;
  double speed = 1.0;
  double weights = 0.0;
  for (Job& job : jobs_) {
    job.capped = false;
    weights += job.share.weight;
  }
  // A job that would get more than its greatest share gets just that share; the rest is divided again, until no job exceeds its
  // share.
  for (bool again = true; again && weights > 0.0;) {
    again = false;
    const double per_weight = speed / weights;
    weights = 0.0;
    for (Job& job : jobs_) {
      if (job.capped) continue;
      job.rate = std::min(job.share.weight * per_weight, job.share.most);
      job.capped = job.rate == job.share.most;
      if (job.capped) {
        speed -= job.rate;
        again = true;
      } else {
        weights += job.share.weight;
      }
    }
    speed = std::max(speed, per_weight * weights);  // so in exact arithmetic; rounding may leave nothing for a tiny weight
  }
  double wait_ps = std::numeric_limits<double>::infinity();
  for (const Job& job : jobs_) {
    total_rate_ += job.rate;
    wait_ps = std::min(wait_ps, job.remaining_ps / job.rate);
  }
  next_finish_ = engine_.schedule_after(
      Duration::from_ps(nearest(wait_ps)), [this] { finish_due(); }, finish_priority_);
}

void SharedServer::finish_due() {
  next_finish_ = EventId();
  advance();
  leaving_.clear();
  const auto has_work = [](const Job& job) { return nearest(job.remaining_ps / job.rate) > 0.0; };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (has_work(jobs_[i])) {
      if (kept != i) jobs_[kept] = jobs_[i];
      ++kept;
      continue;
    }
    leaving_.push_back(jobs_[i]);
    in_system_.down(engine_.now());
    record(jobs_[i]);
  }
  jobs_.resize(kept);
  divide();
  for (Job& job : leaving_)
    if (job.on_finish) job.on_finish();
}

std::size_t SharedServer::take_lane() {
  const auto free = std::find(lane_taken_.begin(), lane_taken_.end(), false);
  const auto lane = static_cast<std::size_t>(free - lane_taken_.begin());
  if (free == lane_taken_.end()) {
    lane_taken_.push_back(true);
    lanes_.push_back(timeline_->lane(fmt::format("{}/{}", lane_, lane)));
  } else {
    *free = true;
  }
  return lane;
}

void SharedServer::record(const Job& job) {
  if (job.lane == kNoLane) return;
  lane_taken_[job.lane] = false;
  timeline_->span(lanes_[job.lane], job.name, job.came, engine_.now() - job.came, {{"work_ps", job.work.ps()}});
}

}  // namespace specsim::engine
