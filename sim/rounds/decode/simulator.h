// One cell's decoding, ready to run chunk by chunk on any thread.
#pragma once

#include "sim/rounds/decode/block_round.h"
#include "sim/rounds/decode/chunk.h"
#include "sim/rounds/decode/counts.h"
#include "sim/rounds/decode/fresh_round.h"
#include "sim/rounds/decode/preparation.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/verify/verifier.h"

#include <cstdint>

namespace specsim::decode {

// If every text position has its own distributions, one round in this many has its output compared with the target's
// distribution.
constexpr std::uint32_t kFreshJudged = 8;

struct RoundSetup;

// Whether a round emits one more target token after a path that was accepted to its leaf. Without that bonus, nothing is emitted
// after the path that the next block continued before this one was verified (BlockRound::Ahead; for a chain, the whole chain).
enum class Bonus : bool { none, emitted };

class Simulator {
 public:
  // Without a bonus token draft_length must be at least 1; anything else is a failed check.
  Simulator(const PreparationPlan& plan, const Prepared& prepared, rng::Key draw_key, int draft_length,
            std::uint32_t sequence_rounds, Bonus bonus = Bonus::emitted);
  [[nodiscard]] Counts empty_counts() const;
  // Rounds (requests: sequences) that a whole chunk holds.
  [[nodiscard]] std::uint64_t chunk_size() const;
  // Runs chunk `index` of a run of `total` rounds (requests: of `total` sequences) and adds it to `counts`.
  void run(std::uint64_t index, std::uint64_t total, Counts& counts, RoundSink* sink = nullptr) const;
  // Runs one sequence of `rounds` rounds in lane 0 with the same code, but with random bits from `random_bits`.
  void run_scripted(std::uint64_t rounds, BitSource& random_bits, Counts& counts, RoundSink* sink) const;

 private:
  void run_chunk(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const;
  void run_prepared(const PositionJudging& judging, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                    RoundSink* sink) const;
  // run_prepared() for Bonus::none. It is compiled from its own file, simulator_without_bonus.cpp, because next to the usual loop
  // it would change how the compiler inlines that loop.
  void run_prepared_without_bonus(const RoundSetup& setup, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                                  RoundSink* sink) const;
  void run_fresh(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const;
  void run_fresh_blocks(const BlockJudging& judging, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                        RoundSink* sink) const;
  void run_blocks(const BlockJudging& judging, const ChunkPlan& chunk, BitSource& source, Counts& counts, RoundSink* sink) const;
  // Whether blocks have one shape and stay in one context, so that those of many sequences can be judged side by side.
  [[nodiscard]] bool judges_side_by_side(const BlockJudging& judging) const;
  // Runs chains, or trees, by a rule that judges them side by side, and counts what run_blocks() would. chain_rule() is nullptr
  // if the rule cannot do that.
  [[nodiscard]] const verify::ChainRule* chain_rule(const BlockJudging& judging) const;
  [[nodiscard]] const verify::SiblingRule* sibling_rule(const BlockJudging& judging) const;
  void run_chains(const verify::ChainRule& rule, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts) const;
  void run_trees(const verify::SiblingRule& rule, const draft::BlockDrafter& drafter, const ChunkPlan& chunk,
                 BitSource& random_bits, Counts& counts) const;

  PreparationPlan plan_;
  const Prepared* prepared_;
  rng::Key draw_key_;
  int draft_length_;
  std::uint32_t sequence_rounds_;
  Bonus bonus_;
};

}  // namespace specsim::decode
