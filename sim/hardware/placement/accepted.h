// Acceptance counts of a batch from the exact simulator: how many draft tokens each sequence accepts, round by round.
#pragma once

#include "sim/rounds/decode/simulator.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::placement {

struct AcceptedCounts {
  int draft_length = 0;
  decode::Bonus bonus = decode::Bonus::emitted;
  std::vector<std::vector<std::uint8_t>> of_sequence;  // [sequence][round]: 0 .. draft_length
  // [sequence][round]: tokens that were drafted, over all paths; empty if every round drafts the same number.
  std::vector<std::vector<std::uint16_t>> drafted;
  // [sequence][round][pass]: rows of the draft's passes, for a drafter whose passes are counted; else empty.
  std::vector<std::vector<std::vector<std::uint16_t>>> pass_rows;
  // [sequence][round]: 1 if the accepted path ends at a leaf of the draft, or, without a bonus token, at the leaf that the next
  // block continues; empty if this is the same as accepting draft_length tokens.
  std::vector<std::vector<std::uint8_t>> whole;
  // Without a bonus token, [sequence][round]: depth of the leaf that the next block continues; empty if it is draft_length.
  std::vector<std::vector<std::uint8_t>> ahead;
  // [sequence][round]: tokens of the block that continues that leaf, if a draft length policy chooses another block after full
  // acceptance; else empty.
  std::vector<std::vector<std::uint16_t>> drafted_ahead;

  [[nodiscard]] bool is_whole(std::size_t sequence, std::size_t round) const {
    return whole.empty() ? of_sequence[sequence][round] == draft_length : whole[sequence][round] != 0;
  }

  // Tokens that a round emits.
  [[nodiscard]] int emitted(std::size_t sequence, std::size_t round) const {
    return of_sequence[sequence][round] + (bonus == decode::Bonus::emitted || !is_whole(sequence, round) ? 1 : 0);
  }
};

// The inputs of the decode loop; refers to the plan's parts and to the tables.
struct RoundSource {
  decode::PreparationPlan plan;
  const decode::Prepared* prepared = nullptr;
  rng::Key draw_key;
  int draft_length = 0;
  double round_cost = 0.0;  // time of a draft length policy's decision in each round, in passes without speculation
};

// Runs sequences 0 .. sequences - 1 of the cell, each until its rounds have emitted `tokens`, with decode::Simulator itself: the
// same addresses of random numbers, so the same drafts and acceptances as in its long run. Every round emits at least one token,
// so `tokens` rounds always suffice; it starts with fewer and doubles them for chunks that fall short. If requests have an end,
// it must not come before `tokens`: a failed check.
AcceptedCounts record_accepted(const RoundSource& source, decode::Bonus bonus, std::size_t sequences, std::uint64_t tokens);

}  // namespace specsim::placement
