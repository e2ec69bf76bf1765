// Common state of every placement: the batch in lockstep, the times of its passes, the account of time.
#pragma once

#include "sim/hardware/engine/event_loop.h"
#include "sim/hardware/engine/timeline.h"
#include "sim/hardware/placement/placement.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::placement {

// Time of one or several passes, in whole picoseconds.
struct PassLatency {
  Duration model;
  Duration sampling;
  Duration host;
  [[nodiscard]] Duration total() const { return model + sampling + host; }
};
PassLatency pass_latency(const cost::PassTime& time, double more_host = 0.0);

// The most tokens that a sequence drafts in a round, over all paths.
int most_drafted(const Drafting& drafting, int draft_length);
// The passes and rows of a round for a sequence that drafts this many tokens.
draft::BlockWork work_of(const Drafting& drafting, int drafted);

class Lockstep {
 public:
  Lockstep(const Generation& generation, engine::Timeline* timeline);
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

 protected:
  // The result of a round, over the sequences that took part.
  struct BatchRound {
    std::uint64_t round = 0;
    std::uint64_t batch = 0;     // sequences that took part
    std::uint64_t drafted = 0;   // tokens that all of them drafted
    std::uint64_t accepted = 0;  // drafts that were emitted, of all of them
    std::uint64_t full = 0;      // sequences that continue and accepted a path down to a leaf (without a bonus: the guessed one)
    std::uint64_t rejected = 0;  // sequences that continue and did not
  };

  ~Lockstep() = default;

  [[nodiscard]] int draft_length() const { return generation_.accepted->draft_length; }
  [[nodiscard]] bool done() const { return running_.empty(); }
  [[nodiscard]] std::uint64_t round() const { return result_.rounds; }
  // Sequences that passes contain, at least 1 before the end.
  [[nodiscard]] std::uint64_t size() const { return generation_.shrink ? running_.size() : result_.sequences; }
  // The mean of the tokens that these sequences have cached.
  [[nodiscard]] double context() const;
  // The share of these sequences that the draft must catch up with: they accepted everything in the last round, and got a bonus
  // token.
  [[nodiscard]] double catch_up_share() const;

  // The work of the next round and the number of drafted tokens, per sequence: means over the batch.
  struct Upcoming {
    draft::BlockWork work;
    double drafted = 0.0;
    [[nodiscard]] std::uint64_t drafted_by(std::uint64_t sequences) const;
  };
  [[nodiscard]] Upcoming upcoming() const;
  // As upcoming(), over only those sequences that have no block for the next round, because the block that continued their last
  // one is lost.
  [[nodiscard]] Upcoming upcoming_of_missed() const;
  // The work drafted while the next round is verified: for sequences that will have guessed right, the block of the round after
  // it. For the others the block will be lost, and its size is only known from a draft length policy; else it is assumed to be as
  // large as the block that replaces it.
  [[nodiscard]] draft::BlockWork ahead() const;
  // The mean of the tokens that precede that block in the cache.
  [[nodiscard]] double ahead_context() const;
  // Tokens that the next round emits, of all sequences, not cut at the ends of texts.
  [[nodiscard]] std::uint64_t emitted_by_round() const;
  // Whether drafting takes passes at all; copying from the text does not.
  [[nodiscard]] bool draft_runs() const;

  [[nodiscard]] PassLatency prefill_latency(cost::Role role) const;
  // Times of the draft's pass `index` of a block that begins at `context` cached tokens, and of all passes of a block, over
  // `batch` sequences. `extra`: rows of the first pass that catch up with the text.
  [[nodiscard]] PassLatency draft_pass_latency(std::uint64_t batch, const draft::BlockWork& block, std::size_t index,
                                               double context) const;
  [[nodiscard]] PassLatency draft_latency(std::uint64_t batch, const draft::BlockWork& block, double context, double extra) const;
  // The target's pass over the drafted tokens and the token before them; with the round's overhead if there are drafts.
  [[nodiscard]] PassLatency verify_latency() const;

  // Emits every sequence's first token now.
  void emit_first();
  // Ends every running sequence's next round now and emits its tokens.
  BatchRound finish_round();

  // Adds `wall` to `part`, except for the pass's sampling and host time, which have parts of their own.
  void spend(Duration Parts::*part, Duration wall, const PassLatency& pass);
  void spend(Duration Parts::*part, Duration wall) { result_.parts.*part += wall; }
  // Counts the wasted share of a block's drafting: of `drafted` tokens, `used` were emitted.
  void waste(Duration block, std::uint64_t used, std::uint64_t drafted);
  void add_wasted_ahead(Duration stretch);

  [[nodiscard]] engine::Timeline::Lane lane(std::string_view name) {
    return timeline_ != nullptr ? timeline_->lane(name) : engine::Timeline::Lane{};
  }
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration) const;
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration, std::uint64_t round,
            std::uint64_t batch, std::string_view colour = {}) const;
  // Draws a round's span, coloured by how many drafts were accepted.
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration,
            const BatchRound& outcome) const;

  // Runs the engine to the end; checks that the parts add up to the total.
  Result run();

  engine::EventLoop engine_;
  Result result_;

 private:
  void end_now(std::uint32_t sequence);
  [[nodiscard]] int drafted_in(std::uint32_t sequence, std::size_t round) const;
  [[nodiscard]] draft::BlockWork block_of(std::uint32_t sequence, std::size_t round) const;
  [[nodiscard]] Upcoming mean_of(std::span<const std::uint32_t> sequences) const;
  [[nodiscard]] cost::PassTime draft_pass(std::uint64_t batch, const draft::BlockWork& block, std::size_t index, double context,
                                          double extra) const;

  const Generation& generation_;
  int drafted_;             // the most tokens that a sequence drafts in a round
  draft::BlockWork whole_;  // work of a round that drafts this many
  engine::Timeline* timeline_;
  std::vector<std::uint32_t> running_;  // sequences that are not finished, in order
  std::vector<std::uint32_t> missed_;   // those of them that BatchRound::rejected counted in the last round
  std::vector<std::uint64_t> emitted_;  // [sequence]
  std::vector<std::int64_t> ended_ps_;  // [sequence]
  std::uint64_t emitted_in_batch_ = 0;  // tokens of the sequences that passes hold
  std::uint64_t full_ = 0;              // running sequences that accepted everything in the last round
  SimTime last_burst_;
  std::vector<std::pair<std::int64_t, std::uint64_t>> gaps_;  // ps between bursts, how many of them
};

}  // namespace specsim::placement
