// Chains that are drafted in one pass, each token with a bias by the previous one (DSpark, Cheng et al. 2026, arXiv 2607.05147,
// equation 4). Draft distributions depend on the state before the block and on the state at the position.
#pragma once

#include "sim/rounds/theory/block.h"
#include "sim/rounds/theory/round_chain.h"

#include <span>
#include <vector>

namespace specsim::theory {

// softmax of ((1 - share) log before + share log known) / temperature; in probabilities, the product of their powers. A
// probability of 0 counts as 2^-1022. temperature 0: all mass on the likeliest token (ties: the lowest). candidates above 0: only
// this many of the likeliest tokens before the bias (DFlash2, vLLM pull request 52816).
[[nodiscard]] std::vector<double> biased_distribution(std::span<const double> before, std::span<const double> known, double share,
                                                      double temperature, int candidates = 0);

// One outcome of a text position, like Branch, in a block that began in one state.
struct JoinedBranch {
  Branch branch;
  double kept = 0.0;  // probability that it is drafted and accepted, including its hidden move
  bool ends = false;  // drafting ends after it
};
using JoinedBranches = std::vector<std::vector<std::vector<JoinedBranch>>>;  // [draft position, and the next one][state]

// [accepted][states]: P(accepted, next round starts in s') of a round that starts in `start`. The rule is lossless: the token at
// every reached position is the target's, accepted or not.
[[nodiscard]] std::vector<std::vector<double>> joined_row(const JoinedBranches& branches, int draft_length, int start);

}  // namespace specsim::theory
