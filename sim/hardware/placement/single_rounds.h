// Rounds of sequences one at a time; the caller decides how much of each drafted chain is verified.
#pragma once

#include "sim/hardware/placement/accepted.h"
#include "sim/rounds/decode/block_round.h"
#include "sim/rounds/decode/random_bits.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace specsim::placement {

// The rounds of record_accepted(), with the same random bits: if all chains are fully verified, they accept what it records. The
// cell judges chains as blocks, from a pool of contexts.
class SingleRounds {
 public:
  // State between two rounds of a sequence.
  struct State {
    std::uint64_t sequence = 0;
    std::uint32_t context = 0;
    std::uint32_t text_position = 0;  // tokens that its rounds emitted
    std::uint32_t round = 0;
  };

  explicit SingleRounds(const RoundSource& source);
  [[nodiscard]] State start(std::uint64_t sequence) const;
  // Drafts the chain of the next round and stores the forecast of each of its tokens: `forecasts` has the draft length.
  void draft(const State& state, std::span<draft::LengthPolicy::TokenForecast> forecasts);
  // Plays the next round, which verifies at most this many tokens of its chain; returns how many it accepts.
  std::uint32_t play(State& state, std::uint32_t verified);

 private:
  [[nodiscard]] decode::GroupBits& bits_of(const State& state);
  [[nodiscard]] decode::BlockRound::Start start_of(const State& state, int longest) const;

  const families::ContextProcess* process_;
  const verify::BlockRule* rule_;
  rng::Key key_;
  decode::PhiloxBits source_;
  decode::BlockRound round_;
  std::unique_ptr<draft::BlockDrafter::Memory> memory_;   // a chain's drafter has no state of its own
  std::vector<std::unique_ptr<decode::GroupBits>> bits_;  // [sequence / GroupBits::kGroup]
};

}  // namespace specsim::placement
