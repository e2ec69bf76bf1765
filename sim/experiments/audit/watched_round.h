// One round of decode::Simulator from a given context with given random bits. It runs with a sink that watches it, and again
// without one, as production does.
#pragma once

#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/families/context.h"

#include <boost/core/noncopyable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace specsim::audit {

// The events of a watched round.
struct SeenRound {
  std::vector<Token> emitted;
  std::uint32_t next_context = 0;
  std::uint32_t accepted = 0;  // as the simulation counts it
  std::uint32_t judged = 0;    // counted in the same way
  bool operator==(const SeenRound&) const = default;
};

class WatchedRound : boost::noncopyable {
 public:
  // Both arguments must outlive this object.
  WatchedRound(const decode::PreparationPlan& plan, const decode::Prepared& prepared, rng::Key key, int draft_length);
  ~WatchedRound();

  // `loop`, if given, replaces the simulator's own: (chunk, random bits, counts, sink).
  using Loop = std::function<void(const decode::ChunkPlan&, decode::BitSource&, decode::Counts&, decode::RoundSink*)>;
  void set_loop(Loop loop) { loop_ = std::move(loop); }
  // The process that starts in the round's context; a loop's setup needs it.
  [[nodiscard]] const families::ContextProcess& process() const { return *started_.process; }

  // Plays one round that starts in `context`. Returns what it reported to the sink and counted; a check fails if the two
  // contradict each other.
  SeenRound watch(std::uint32_t context, decode::BitSource& random_bits);
  // Plays the same round without a sink, as production does, which may take another path through the code. A check fails if the
  // counts differ from those of the round watched last.
  void check_unwatched(std::uint32_t context, decode::BitSource& random_bits);

 private:
  void run(std::uint32_t context, decode::BitSource& random_bits, decode::Counts& counts, decode::RoundSink* sink);

  class StartsAt;
  families::ContextModel started_;  // needs no distributions once the tables exist
  StartsAt* starts_at_ = nullptr;
  std::optional<decode::Simulator> simulator_;
  decode::Counts empty_;
  decode::Counts watched_;
  Loop loop_;
};

}  // namespace specsim::audit
