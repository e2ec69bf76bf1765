// What every placement keeps: the batch in lockstep, the prices of its passes, the account of time.
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

// A pass, or several, in whole picoseconds.
struct Priced {
  Duration model;
  Duration sampling;
  Duration host;
  [[nodiscard]] Duration total() const { return model + sampling + host; }
};
Priced priced(const cost::PassTime& time, double more_host = 0.0);

// The most tokens that a sequence drafts in a round, over all paths.
int most_drafted(const Drafting& drafting, int draft_length);
// What a round takes of a sequence that drafts so many tokens.
draft::Work work_of(const Drafting& drafting, int drafted);

class Lockstep {
 public:
  Lockstep(const Generation& generation, engine::Timeline* timeline);
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

 protected:
  // What a round did, over the sequences that took part.
  struct Outcome {
    std::uint64_t round = 0;
    std::uint64_t batch = 0;     // sequences that took part
    std::uint64_t drafted = 0;   // tokens that all of them drafted
    std::uint64_t accepted = 0;  // drafts that were emitted, of all of them
    std::uint64_t full = 0;      // sequences that go on and accepted a path down to a leaf (without a bonus: the guessed one)
    std::uint64_t rejected = 0;  // sequences that go on and did not
  };

  ~Lockstep() = default;

  [[nodiscard]] int draft_length() const { return generation_.accepted->draft_length; }
  [[nodiscard]] bool done() const { return running_.empty(); }
  [[nodiscard]] std::uint64_t round() const { return result_.rounds; }
  // Sequences that passes hold, at least 1 before the end.
  [[nodiscard]] std::uint64_t size() const { return generation_.shrink ? running_.size() : result_.sequences; }
  // The mean of the tokens that these sequences have cached.
  [[nodiscard]] double context() const;
  // The share of them that the draft must catch up with: they accepted everything in the last round, and got a bonus token.
  [[nodiscard]] double catch_up_share() const;

  // What the round to come takes of its sequences, and how many tokens they draft: the mean of them.
  struct Upcoming {
    draft::Work work;
    double drafted = 0.0;
    [[nodiscard]] std::uint64_t drafted_by(std::uint64_t sequences) const;
  };
  [[nodiscard]] Upcoming upcoming() const;
  // As upcoming(), over the sequences alone that have no block for the round to come, since what was drafted behind the last one
  // is lost.
  [[nodiscard]] Upcoming upcoming_of_missed() const;
  // What is drafted while the round to come is verified: for the sequences that will have guessed right the block of the round
  // after it. Of the others nothing is known of the block that is lost but what a draft length policy says; else it is taken to
  // be as large as the one that they draft in its place.
  [[nodiscard]] draft::Work ahead() const;
  // The mean of the tokens that precede it in the cache.
  [[nodiscard]] double ahead_context() const;
  // Tokens that the round to come emits, of all sequences; what ends a text is not cut.
  [[nodiscard]] std::uint64_t emitted_by_round() const;
  // Whether drafts take passes at all, which copies of the text do not.
  [[nodiscard]] bool draft_runs() const;

  [[nodiscard]] Priced prefill_price(cost::Role role) const;
  // The draft's pass `index` of a block that begins at `context` cached tokens, and all passes of a block, over `batch`
  // sequences. `extra`: rows of the first one that catch up with the text.
  [[nodiscard]] Priced draft_pass_price(std::uint64_t batch, const draft::Work& block, std::size_t index, double context) const;
  [[nodiscard]] Priced draft_price(std::uint64_t batch, const draft::Work& block, double context, double extra) const;
  // The target's pass over the drafted tokens and the one before them; with the round's overhead where there are drafts.
  [[nodiscard]] Priced verify_price() const;

  // Every sequence's first token comes now.
  void emit_first();
  // Every running sequence's next round ends now: its tokens come.
  Outcome finish_round();

  // Books `wall` to `part`, less what of it was the pass's sampling and host.
  void spend(Duration Parts::*part, Duration wall, const Priced& pass);
  void spend(Duration Parts::*part, Duration wall) { result_.parts.*part += wall; }
  // Books the share of a block's drafting that was for nothing: of `drafted` tokens, `used` were emitted.
  void waste(Duration block, std::uint64_t used, std::uint64_t drafted);
  void in_vain(Duration stretch);

  [[nodiscard]] engine::Timeline::Lane lane(std::string_view name) {
    return timeline_ != nullptr ? timeline_->lane(name) : engine::Timeline::Lane{};
  }
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration) const;
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration, std::uint64_t round,
            std::uint64_t batch, std::string_view colour = {}) const;
  // Draws a round's span, coloured by how many drafts were accepted.
  void span(engine::Timeline::Lane lane, std::string_view name, SimTime start, Duration duration, const Outcome& outcome) const;

  // Runs the engine to the end; checks that the parts are all of it.
  Result run();

  engine::EventLoop engine_;
  Result result_;

 private:
  void end_now(std::uint32_t sequence);
  [[nodiscard]] int drafted_in(std::uint32_t sequence, std::size_t round) const;
  [[nodiscard]] draft::Work block_of(std::uint32_t sequence, std::size_t round) const;
  [[nodiscard]] Upcoming mean_of(std::span<const std::uint32_t> sequences) const;
  [[nodiscard]] cost::PassTime draft_pass(std::uint64_t batch, const draft::Work& block, std::size_t index, double context,
                                          double extra) const;

  const Generation& generation_;
  int drafted_;        // the most tokens that a sequence drafts in a round
  draft::Work whole_;  // a round's that drafts so many
  engine::Timeline* timeline_;
  std::vector<std::uint32_t> running_;  // sequences that are not finished, in order
  std::vector<std::uint32_t> missed_;   // those of them that Outcome::rejected counted in the last round
  std::vector<std::uint64_t> emitted_;  // [sequence]
  std::vector<std::int64_t> ended_ps_;  // [sequence]
  std::uint64_t emitted_in_batch_ = 0;  // tokens of the sequences that passes hold
  std::uint64_t full_ = 0;              // running sequences that accepted everything in the last round
  SimTime last_burst_;
  std::vector<std::pair<std::int64_t, std::uint64_t>> gaps_;  // ps between bursts, how many of them
};

}  // namespace specsim::placement
