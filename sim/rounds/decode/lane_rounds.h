// Common code for block rounds that are judged side by side, in sequences that all stay in one context. Draft tokens and the
// tokens after the accepted ones are drawn for many lanes at once, and emitted tokens are counted.
#pragma once

#include "sim/rounds/decode/block_tables.h"
#include "sim/rounds/decode/chunk.h"
#include "sim/rounds/decode/preparation.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/decode/wide_steps.h"

#include <array>
#include <cstdint>
#include <vector>

namespace specsim::decode {

// Steps work on whole registers, see wide_steps.h.
template <class T>
using PaddedLanes = std::array<T, kLanes + wide::kSlack>;

// Draws tokens from a draft distribution for many lanes.
class LaneDraws {
 public:
  [[nodiscard]] std::uint64_t* bits() { return bits_.data(); }  // [count]: the random numbers for the tokens
  void draw(const math::RatioTable& distributions, std::uint32_t count, Token* tokens);

 private:
  PaddedLanes<std::uint64_t> bits_{};
  PaddedLanes<std::uint64_t> column_{};
  PaddedLanes<std::uint64_t> rest_{};
  PaddedLanes<std::uint64_t> entry_{};
};

class LaneRounds {
 public:
  // All arguments must outlive it. `longest`: tokens on the longest path of the block.
  LaneRounds(const Prepared& prepared, std::uint32_t longest, const ChunkPlan& chunk, BitSource& random_bits);

  // The result of a round, by lane. `path`, [depth][kLanes], holds the accepted tokens, with room for the final one.
  struct Verdicts {
    Token* path = nullptr;
    const std::uint32_t* accepted = nullptr;
    const std::uint32_t* whole = nullptr;                // 1 where the path ends at a leaf of the block
    const math::Residual* final_distribution = nullptr;  // the final token's: (target - c draft)+; c = 0 is the target
  };
  // Plays all rounds. judge(round, lanes) decides how round `round` ends in lanes 0 .. lanes - 1.
  template <class Judge>
  void run(const Verdicts& verdicts, const Judge& judge) {
    std::uint32_t live = chunk_.sequences();
    for (std::uint32_t round = 0;; ++round) {
      while (live > 0 && chunk_.rounds_in(live - 1) <= round) --live;
      if (live == 0) return;
      judge(round, live);
      draw_final_tokens(verdicts, round, live);
      count(verdicts, live);
    }
  }
  // Adds all rounds to the counts; each round drafted `nodes` tokens.
  void add_to(Counts& counts, std::size_t nodes) const;

 private:
  void draw_final_tokens(const Verdicts& verdicts, std::uint32_t round, std::uint32_t live);
  void count(const Verdicts& verdicts, std::uint32_t live);

  const Prepared* prepared_;
  const BlockTables* tables_;
  std::uint32_t longest_;
  ChunkPlan chunk_;
  BitSource* random_bits_;
  std::array<std::uint64_t, kLanes> final_bits_;
  std::array<std::uint64_t, kLanes> unused_;
  std::array<std::uint32_t, kLanes> by_accepted_;  // lanes, ordered by accepted tokens, fewest first
  std::vector<std::uint32_t> end_of_;              // [accepted]: in by_accepted_

  // Tokens are counted by (bin of the previous token, class). A lane remembers where the row of its last token's bin begins.
  std::vector<std::uint64_t> pairs_;
  std::vector<std::uint32_t> row_after_;  // [class]
  std::array<std::uint32_t, kLanes> row_;
  std::vector<std::uint64_t> rounds_of_;  // [accepted]
  std::vector<std::uint64_t> whole_of_;   // [accepted]: number of lanes whose path ends at a leaf
  std::array<std::uint64_t, kLanes> emitted_{};
  std::array<std::uint64_t, kLanes> full_{};
  std::array<std::uint64_t, kLanes> longest_rounds_{};
};

}  // namespace specsim::decode
