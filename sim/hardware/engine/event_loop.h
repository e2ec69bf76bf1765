// A discrete-event engine: a clock, and events that run in order. It does not depend on tokens.
//
// Order. Events run by (time, priority, sequence): earlier first, then the lower priority number, then first scheduled first
//   run. The only comparator is `<` on the key of key_heap.h. Memory addresses, hashes and threads do not affect the order, so a
//   simulation is a function of its inputs.
// Ties. An event scheduled for now runs after the running one returns, before time moves on, and after events of equal time and
//   priority that were scheduled earlier. An event with a lower priority number scheduled for now runs before the events that
//   wait at now.
// Cancellation. cancel(id) is true if and only if the event was still pending; it will then not run. An event is no longer
//   pending once it runs. Cancelling the running event, or one that ran or was cancelled before, returns false. An EventId names
//   one event for ever because it holds the event's sequence number; the default EventId names none.
// Errors, all failed checks (sim/foundation/base/check.h): scheduling before now, a priority above 15, an empty action, more
//   than 2^20 events pending, more than 2^40 ever scheduled, a time past the end of SimTime, running the engine from inside an
//   event. An exception thrown by an action passes through run(); that event counts as executed, and the engine can run on.
// Complexity, for n events pending: schedule and step O(log n); cancel O(1), amortised: the key stays in the heap until it
//   reaches the top, or until cancelled keys outnumber live ones and are removed. Memory is allocated only when more events are
//   pending than ever before.
// Threads: none. One engine belongs to one thread; different engines are independent.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/sim_time.h"
#include "sim/hardware/engine/key_heap.h"

#include <boost/core/noncopyable.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace specsim::engine {

// An event's action: a small callable stored inside the event, never on the heap.
//
// Accepts any trivially copyable callable of at most kBytes bytes that takes no arguments: a lambda that captures a few pointers
// and numbers. A larger callable does not compile; keep its state in an object and capture a pointer to it.

class Action {
 public:
  static constexpr std::size_t kBytes = 40;

  Action() = default;  // does nothing: test with operator bool before a call

  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, Action>>>
  Action(F callable) {  // NOLINT(google-explicit-constructor): a lambda is an action
    set(callable);
  }

  // Becomes this callable, written in place.
  template <class F>
  void set(const F& callable) {
    if constexpr (std::is_same_v<F, Action>) {
      *this = callable;
    } else {
      static_assert(sizeof(F) <= kBytes && alignof(F) <= alignof(void*), "an action captures at most kBytes bytes");
      static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>,
                    "an action is copied as bytes: capture pointers and numbers");
      call_ = [](const void* storage) {
        F copy = *std::launder(static_cast<const F*>(storage));
        copy();
      };
      ::new (static_cast<void*>(storage_)) F(callable);
    }
  }

  explicit operator bool() const { return call_ != nullptr; }
  // Calls a copy on the stack, because the action itself may be overwritten meanwhile.
  void operator()() const { call_(storage_); }

 private:
  void (*call_)(const void*) = nullptr;
  alignas(void*) std::byte storage_[kBytes];
};

static_assert(std::is_trivially_copyable_v<Action> && sizeof(Action) == 40 + sizeof(void*));

// 0 .. 15, lower first among events of equal time.
using Priority = unsigned;
constexpr Priority kFirst = 0;
constexpr Priority kNormal = 8;
constexpr Priority kLast = 15;

class EventId {
 public:
  constexpr EventId() = default;  // no event
  friend constexpr bool operator==(EventId, EventId) = default;
  explicit constexpr operator bool() const { return bits_ != 0; }

 private:
  friend class EventLoop;
  constexpr explicit EventId(std::uint64_t word) : bits_(word) {}
  std::uint64_t bits_ = 0;
};

class EventLoop : boost::noncopyable {
 public:
  [[nodiscard]] SimTime now() const { return now_; }
  [[nodiscard]] std::size_t pending() const { return live_; }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }

  // The label goes into the fingerprint: the kind of event.
  template <class F>
  EventId schedule_at(SimTime at, const F& action, Priority priority = kNormal, std::uint32_t label = 0) {
    if (at < now_ || priority > kLast) [[unlikely]]
      refuse(at, priority);
    if constexpr (std::is_same_v<F, Action>)
      if (!action) [[unlikely]]
        refuse(at, priority);
    const std::uint32_t slot = take_slot();
    const std::uint64_t id = make_id(next_sequence(), slot);
    Event& event = events_[slot];
    event.action.set(action);
    event.id = id;
    event.label = label;
    ++live_;
    heap_.push(make_key(at.ps(), priority, id));
    return EventId(id);
  }
  template <class F>
  EventId schedule_after(Duration delay, const F& action, Priority priority = kNormal, std::uint32_t label = 0) {
    return schedule_at(now_ + delay, action, priority, label);
  }

  // False if the event is not pending.
  bool cancel(EventId id);

  // Runs the next event; false if there is none.
  bool step();
  // Runs until nothing is pending, or stop(). Returns how many events ran.
  std::uint64_t run();
  // Called from inside an event: the run ends after that event. Pending events stay pending.
  void stop() { stopped_ = true; }

  // A 64-bit hash over (time, priority, sequence, label) of every event executed from here on, in order, so that a change of
  // behaviour shows as one changed number. It depends neither on the heap's layout of keys nor on the slots.
  void record_fingerprint() { fingerprinting_ = true; }
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  // One cache line. A key in the heap is alive as long as its event's id is the key's own.
  struct alignas(64) Event {
    Action action;
    std::uint64_t id = 0;  // 0: free, or executed, or cancelled
    std::uint32_t label = 0;
    std::uint32_t next_free = 0;
  };
  static_assert(sizeof(Event) == 64);
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  static constexpr std::size_t kDeadAllowed = 64;

  std::uint32_t take_slot() {
    if (first_free_ == kNoSlot) [[unlikely]]
      return new_slot();
    const std::uint32_t slot = first_free_;
    first_free_ = events_[slot].next_free;
    return slot;
  }
  void free_slot(std::uint32_t slot) {
    events_[slot].id = 0;
    events_[slot].next_free = first_free_;
    first_free_ = slot;
  }
  std::uint64_t next_sequence() {
    if (sequence_ + 1 >= std::uint64_t{1} << kSequenceBits) [[unlikely]]
      refuse(now_, kNormal);
    return sequence_++;
  }
  // Not inlined: the messages would enlarge the code that schedules.
  [[noreturn]] void refuse(SimTime at, Priority priority) const;
  std::uint32_t new_slot();
  // Runs up to `most` events.
  std::uint64_t run_some(std::uint64_t most);

  KeyHeap heap_;  // live and cancelled keys
  std::vector<Event> events_;
  std::uint32_t first_free_ = kNoSlot;
  std::size_t live_ = 0;
  std::size_t dead_ = 0;
  std::uint64_t sequence_ = 1;  // so that no id is 0
  SimTime now_;
  std::uint64_t executed_ = 0;
  std::uint64_t fingerprint_ = 0x9e3779b97f4a7c15ULL;
  bool fingerprinting_ = false;
  bool stopped_ = false;
  bool running_ = false;
};

}  // namespace specsim::engine
