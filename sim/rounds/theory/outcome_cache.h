// Rounds of a draft that prepares chains for likely outcomes (speculative speculative decoding, Kumar, Dao and May, arXiv
// 2603.03251): how often the next round's chain is ready, from the distributions alone.
#pragma once

#include "sim/rounds/theory/round_chain.h"

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::theory {

// One position of a chain: probabilities of what happens if it is reached.
struct PreparedPosition {
  double accepted = 0.0;        // the drafted token is accepted
  double ready_rejected = 0.0;  // it is rejected, and the token that follows instead is among the prepared ones
};

// ranked: the draft's distribution, whose `fan_out` likeliest tokens but the drafted one are prepared (ties: the lower token).
// drafted: the one that tokens are drawn from. If a drawn token is rejected, it has the law (drafted - target)+ and the next one
// independently (target - drafted)+, both normalised.
[[nodiscard]] PreparedPosition prepared_position(std::span<const double> target, std::span<const double> ranked,
                                                 std::span<const double> drafted, std::size_t fan_out);

// The target's mass on the `count` likeliest tokens of `ranked` that have a positive probability.
[[nodiscard]] double prepared_mass(std::span<const double> target, std::span<const double> ranked, std::size_t count);

// Rounds of a sequence: state 0 if the round's outcome before was prepared, state 1 if not. ready_whole: the token after a whole
// chain was prepared for. ready_alone: the token of a round that drafts nothing was. A round in state 1 drafts only if
// drafts_again.
[[nodiscard]] RoundKernel prepared_rounds(const std::vector<PreparedPosition>& chain, double ready_whole, double ready_alone,
                                          bool drafts_again);

}  // namespace specsim::theory
