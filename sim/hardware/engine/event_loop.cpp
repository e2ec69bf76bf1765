#include "sim/hardware/engine/event_loop.h"

namespace specsim::engine {

namespace {

// Not commutative, so that the order matters; two multiplications per word are enough to spread every bit.
constexpr std::uint64_t stir(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
  hash ^= hash >> 32;
  return hash * 0xd6e8feb86659fd93ULL;
}

}  // namespace

void EventLoop::refuse(SimTime at, Priority priority) const {
  SPECSIM_CHECK(at >= now_, "at {} ps, now {} ps: in the past", at.ps(), now_.ps());
  SPECSIM_CHECK(priority <= kLast, "priority {} of 0 .. 15, at {} ps, now {} ps", priority, at.ps(), now_.ps());
  fail_check("an event has an action and a sequence number", __FILE__, __LINE__,
             fmt::format("at {} ps, now {} ps, {} events scheduled", at.ps(), now_.ps(), sequence_ - 1));
}

std::uint32_t EventLoop::new_slot() {
  SPECSIM_CHECK(events_.size() < std::size_t{1} << kSlotBits, "{} events pending, now {} ps", events_.size(), now_.ps());
  events_.emplace_back();
  return static_cast<std::uint32_t>(events_.size() - 1);
}

bool EventLoop::cancel(EventId id) {
  const std::uint32_t slot = slot_of(id.bits_);
  if (!id || slot >= events_.size() || events_[slot].id != id.bits_) return false;
  free_slot(slot);
  --live_;
  ++dead_;
  if (dead_ > live_ + kDeadAllowed) {
    heap_.filter([this](Key key) { return events_[slot_of(id_of(key))].id == id_of(key); });
    dead_ = 0;
  }
  return true;
}

std::uint64_t EventLoop::run_some(std::uint64_t most) {
  SPECSIM_CHECK(!running_, "now {} ps: an event runs the engine", now_.ps());
  struct Running {
    bool& flag;
    ~Running() { flag = false; }
  } const running{running_};
  running_ = true;
  stopped_ = false;
  const std::uint64_t before = executed_;
  while (executed_ - before < most && !stopped_) {
    const Key key = heap_.top();
    if (key == KeyHeap::kNone) break;
    const std::int64_t time_ps = time_of(key);
    const std::uint64_t id = id_of(key);
    Event& event = events_[slot_of(id)];
    heap_.pop();
    if (event.id != id) {
      --dead_;
      continue;
    }
    heap_.visit_next([this](Key next) { __builtin_prefetch(&events_[slot_of(id_of(next))]); });
    if (fingerprinting_) {
      fingerprint_ = stir(fingerprint_, static_cast<std::uint64_t>(time_ps));
      fingerprint_ = stir(fingerprint_, sequence_of(id) << kPriorityBits | priority_of(key));
      fingerprint_ = stir(fingerprint_, event.label);
    }
    free_slot(slot_of(id));
    --live_;
    ++executed_;
    now_ = SimTime::from_ps(time_ps);
    event.action();  // works on a copy of itself, so that events which it schedules may reuse its place
  }
  return executed_ - before;
}

bool EventLoop::step() { return run_some(1) == 1; }

std::uint64_t EventLoop::run() { return run_some(~std::uint64_t{0}); }

}  // namespace specsim::engine
