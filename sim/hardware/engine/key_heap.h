// The order of events, and the heap that keeps it.
//
// A key is one 128-bit word, from the high end:
//
//   time       64 bits   picoseconds
//   priority    4 bits   0..15, lower first
//   sequence   40 bits   counted up by every scheduling, so that equal (time, priority) run first in, first out
//   slot       20 bits   where the event's record lies; never decides, for sequences are unique
//
// (time, priority, sequence) is thus compared by `<` on the word, the only comparator. The layout also limits an engine to 2^20
// events pending and 2^40 scheduled (1.1e12: half a day at 20 million per second); more is a failed check.
//
// Each node has four children, and four keys fill a cache line: a level costs one line and a branch-free choice of the least of
// four. push and pop are O(log n). While an event runs, its root stays empty (a hole) until the next change: an event that
// schedules its successor then costs one descent instead of a descent and a climb.
#pragma once

#include "sim/foundation/base/line_allocator.h"
#include "sim/foundation/base/wide.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace specsim::engine {

using Key = uint128;

constexpr unsigned kPriorityBits = 4;
constexpr unsigned kSequenceBits = 40;
constexpr unsigned kSlotBits = 20;
static_assert(kPriorityBits + kSequenceBits + kSlotBits == 64);

constexpr Key make_key(std::int64_t time_ps, std::uint64_t priority, std::uint64_t id) {
  return Key{static_cast<std::uint64_t>(time_ps)} << 64 | priority << (kSequenceBits + kSlotBits) | id;
}
// The comparator: 1 if a runs before b, else 0. Times have no sign bit, so the sign of the difference is the answer. It is
// arithmetic without a branch because the outcome is random, so a branch predictor would miss half of the time.
constexpr std::size_t precedes(Key a, Key b) { return static_cast<std::size_t>((a - b) >> 127); }

constexpr std::int64_t time_of(Key key) { return static_cast<std::int64_t>(key >> 64); }
constexpr unsigned priority_of(Key key) { return static_cast<unsigned>(static_cast<std::uint64_t>(key) >> (64 - kPriorityBits)); }
// Sequence and slot: an event's name, never reused.
constexpr std::uint64_t id_of(Key key) { return static_cast<std::uint64_t>(key) & ((std::uint64_t{1} << 60) - 1); }
constexpr std::uint64_t make_id(std::uint64_t sequence, std::uint32_t slot) { return sequence << kSlotBits | slot; }
constexpr std::uint64_t sequence_of(std::uint64_t id) { return id >> kSlotBits; }
constexpr std::uint32_t slot_of(std::uint64_t id) { return static_cast<std::uint32_t>(id & ((1U << kSlotBits) - 1)); }

class KeyHeap {
 public:
  KeyHeap() : keys_(kRoot + 1, kNone) {}

  // Keys in the heap, not counting a hole.
  [[nodiscard]] std::size_t size() const { return end_ - kRoot - (hole_ ? 1 : 0); }

  void push(Key key) {
    if (hole_) {
      hole_ = false;
      sift_down(key);
      return;
    }
    if (end_ == keys_.size()) grow();
    std::size_t i = end_++;
    while (i > kRoot) {
      const std::size_t parent = i / 4 + 2;
      if (precedes(keys_[parent], key) != 0) break;
      keys_[i] = keys_[parent];
      i = parent;
    }
    keys_[i] = key;
  }

  // The least key; kNone where there is none. Closes a hole first.
  Key top() {
    if (hole_) close_hole();
    return keys_[kRoot];
  }

  // Calls visit(key) for the keys right below the root: one of them, or a key yet to be pushed, reaches the top next. In a small
  // heap it calls nothing because the events are in the cache anyway.
  template <class Visit>
  void visit_next(Visit&& visit) const {
    if (end_ < 256) return;
    for (std::size_t i = kRoot + 1; i <= kRoot + 4; ++i) visit(keys_[i]);
  }

  // Removes the least key: its place is a hole until the next push or top. Only right after top().
  void pop() { hole_ = true; }

  // Keeps the keys for which keep(key) is true, in O(n).
  template <class Keep>
  void filter(Keep&& keep) {
    if (hole_) close_hole();
    std::size_t kept = kRoot;
    for (std::size_t i = kRoot; i < end_; ++i) {
      const Key key = keys_[i];
      if (keep(key)) keys_[kept++] = key;
    }
    for (std::size_t i = kept; i < end_; ++i) keys_[i] = kNone;
    end_ = kept;
    if (end_ - kRoot < 2) return;
    for (std::size_t i = (end_ - 1) / 4 + 2; i >= kRoot; --i) sift_down_from(i, keys_[i]);
  }

  // Greater than every key, since the last sequence number is never used.
  static constexpr Key kNone = ~Key{0} >> 1;

 private:
  // The root's place: the children of i are 4 (i - 2) .. 4 (i - 2) + 3, which begin a cache line.
  static constexpr std::size_t kRoot = 3;

  void grow() { keys_.resize(2 * keys_.size(), kNone); }

  void close_hole() {
    hole_ = false;
    const Key last = std::exchange(keys_[--end_], kNone);
    if (end_ > kRoot) sift_down(last);
  }

  void sift_down(Key key) { sift_down_from(kRoot, key); }

  // The keys after the end are kNone up to the end of their line, so four children can always be read.
  void sift_down_from(std::size_t i, Key key) {
    Key* const keys = keys_.data();
    const std::size_t end = end_;
    for (;;) {
      const std::size_t first = 4 * (i - 2);
      if (first >= end) break;
      const Key* const c = keys + first;
      const std::size_t a = precedes(c[1], c[0]);
      const std::size_t b = 2 + precedes(c[3], c[2]);
      const std::size_t least = a ^ ((a ^ b) & (std::size_t{0} - precedes(c[b], c[a])));
      if (precedes(key, c[least]) != 0) break;
      keys[i] = c[least];
      i = first + least;
    }
    keys[i] = key;
  }

  std::vector<Key, LineAllocator<Key>> keys_;  // size is a multiple of 4
  std::size_t end_ = kRoot;
  bool hole_ = false;
};

}  // namespace specsim::engine
