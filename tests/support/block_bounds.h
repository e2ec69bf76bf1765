// The gain of block verification, and the largest possible gain of any rule for one path.
#pragma once

#include "sim/rounds/theory/block.h"

#include <vector>

namespace specsim::theory {

// Mean emitted per round of an endless sequence. Requires one recurrent class.
[[nodiscard]] double block_long_run_tokens_per_round(const BlockContext& context, int draft_length);

// The pair of overlap alpha in (0, 1) with the largest block gain over the token rule, which is the least among pairs of that
// overlap: two tokens whose distributions are swapped. By the same concavity two ratios do best, one on either side of 1, with no
// target mass where nothing is drafted; of those pairs, one for each share of the draft above 1, this one was best at every
// length searched.
[[nodiscard]] WeightedPair widest_block_pair(double alpha);

// P(accepted >= i), i = 1..draft_length, of the best lossless rule for one path, over rules that see all drafts and distributions
// of the round: the largest A(x^i) = P(accepted >= i, drafts x^i) with A(x^i) <= draft(x^i) and A(x^i x) <= A(x^i) target(x |
// x^i), since what is emitted after x^i must leave a mass >= 0 to the final token. It equals block verification's (as Sun et al.
// 2024 prove; for rules that see off-path distributions Thomas and Pal 2026, arXiv 2602.16961). vocab^draft_length is limited to
// 2^22.
[[nodiscard]] std::vector<double> optimal_chain_tails(const Automaton& automaton, int draft_length);
// Overlap of the joint distributions of the first i tokens, i = 1..draft_length: an upper bound for rules that may also bend the
// distribution of later rounds. The published ideal of 12/9 for the first known pair is its sum.
[[nodiscard]] std::vector<double> joint_overlaps(const Automaton& automaton, int draft_length);

}  // namespace specsim::theory
