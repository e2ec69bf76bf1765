// One round of decode::Simulator with given random bits from a given context, as production runs it: watched by a sink, then not.
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

// What a watched round showed.
struct SeenRound {
  std::vector<Token> emitted;
  std::uint32_t next_context = 0;
  std::uint32_t accepted = 0;  // as the simulation counts it
  std::uint32_t judged = 0;    // counted likewise
  bool operator==(const SeenRound&) const = default;
};

class WatchedRound : boost::noncopyable {
 public:
  // Both must outlive it.
  WatchedRound(const decode::PreparationPlan& plan, const decode::Prepared& prepared, rng::Key key, int draft_length);
  ~WatchedRound();

  // `loop`, if there is one, stands for the simulator's own: (chunk, random bits, counts, sink).
  using Loop = std::function<void(const decode::ChunkPlan&, decode::BitSource&, decode::Counts&, decode::RoundSink*)>;
  void set_loop(Loop loop) { loop_ = std::move(loop); }
  // The process that starts in the context of the round, for a loop's setup.
  [[nodiscard]] const families::ContextProcess& process() const { return *started_.process; }

  // Plays one round that starts in `context`, and returns what it reported to the sink and counted. A failed check where the two
  // contradict each other.
  SeenRound watch(std::uint32_t context, decode::BitSource& random_bits);
  // The same round without a sink, as production runs it, which may take another path through the code: a failed check if it
  // counts otherwise than the round that was watched last.
  void check_unwatched(std::uint32_t context, decode::BitSource& random_bits);

 private:
  void run(std::uint32_t context, decode::BitSource& random_bits, decode::Counts& counts, decode::RoundSink* sink);

  class StartsAt;
  families::ContextModel started_;  // needs no distributions once the tables are there
  StartsAt* starts_at_ = nullptr;
  std::optional<decode::Simulator> simulator_;
  decode::Counts empty_;
  decode::Counts watched_;
  Loop loop_;
};

}  // namespace specsim::audit
