// What the exact simulator says of a batch: how many drafts each sequence accepts, round by round.
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
  // [sequence][round]: tokens that were drafted, over all paths; empty where every round drafts the same.
  std::vector<std::vector<std::uint16_t>> drafted;
  // [sequence][round][pass]: rows of the draft's passes, of a drafter whose passes are counted; else empty.
  std::vector<std::vector<std::vector<std::uint16_t>>> pass_rows;
  // [sequence][round]: 1 where the accepted path ends at a leaf of what was drafted, or without a bonus token at the leaf that
  // the next block is drafted behind; empty where that is to accept draft_length tokens.
  std::vector<std::vector<std::uint8_t>> whole;
  // Without a bonus token, [sequence][round]: how deep the leaf lies that the next block is drafted behind; empty where that is
  // draft_length.
  std::vector<std::vector<std::uint8_t>> ahead;
  // [sequence][round]: tokens of the block that is drafted behind that leaf, where a draft length policy gives another block
  // after full acceptance; empty elsewhere.
  std::vector<std::vector<std::uint16_t>> drafted_ahead;

  [[nodiscard]] bool is_whole(std::size_t sequence, std::size_t round) const {
    return whole.empty() ? of_sequence[sequence][round] == draft_length : whole[sequence][round] != 0;
  }

  // Tokens that a round emits.
  [[nodiscard]] int emitted(std::size_t sequence, std::size_t round) const {
    return of_sequence[sequence][round] + (bonus == decode::Bonus::emitted || !is_whole(sequence, round) ? 1 : 0);
  }
};

// What the decode loop is set up from; refers to the plan's parts and to the tables.
struct RoundSource {
  decode::PreparationPlan plan;
  const decode::Prepared* prepared = nullptr;
  rng::Key draw_key;
  int draft_length = 0;
  double round_cost = 0.0;  // time that a draft length policy's decision takes each round, in plain passes
};

// Sequences 0 .. sequences - 1 of the cell, each until its rounds have emitted `tokens`, by decode::Simulator itself: the same
// addresses, so the same drafts and the same acceptances as in its long run. Every round emits a token at least, so `tokens`
// rounds would always do; it starts with fewer and doubles them for the chunks that fall short. Where requests have an end, it
// must not come before `tokens`: a failed check.
AcceptedCounts record_accepted(const RoundSource& source, decode::Bonus bonus, std::size_t sequences, std::uint64_t tokens);

}  // namespace specsim::placement
