// Block verification of one drafted path (Sun et al. 2024, arXiv 2403.10444), from the distribution of its clipped ratio product.
//
// With carry_0 = 1 and carry_i = min(1, carry_{i-1} target(x_i) / draft(x_i)), the rule obeys
//   P(accepted >= i | x_1 ... x_i) = carry_i   and   P(accepted = i, next token x | x_1 ... x_i) = (carry_i target(x) -
//   draft(x))+
// for i < draft_length, and carry_i target(x) at the end (both by induction from the last position). So E[accepted] is the sum
// of E[carry_i], and a whole round follows from the carry's atoms: no acceptance test is walked.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/round_distribution.h"

#include <functional>
#include <span>
#include <vector>

namespace specsim::theory {

// One outcome of a text position: its probability under both distributions, and the state that it leads to.
struct Branch {
  double target = 0.0;
  double draft = 0.0;
  int next = 0;
};

// Positions of text. If the state moves by chance (or a pair is drawn from a pool), that move is part of the branch: its
// probability multiplies both distributions and does not change the ratio.
struct BlockContext {
  int states = 1;
  std::vector<std::vector<std::vector<Branch>>> branches;  // [draft position, or size 1 for all][state]
};

struct WeightedPair {
  double weight = 1.0;  // any positive scale
  std::vector<double> target;
  std::vector<double> draft;
};

// Distributions driven by the emitted tokens.
[[nodiscard]] BlockContext block_context(const Automaton& automaton);
// Each position draws one of the pairs by weight, independently; a single pair gives a fixed context.
[[nodiscard]] BlockContext block_context(std::span<const WeightedPair> pool);
// State s has pairs[s] (weights are ignored) and moves by `transition`, states x states row-major, whatever the tokens are.
[[nodiscard]] BlockContext block_context(std::span<const WeightedPair> pairs, const std::vector<double>& transition);

// [accepted][states x states, row-major]: P(accepted, next round starts in s' | round starts in s). Atoms of the carry that
// differ only by rounding are merged; more than 2^20 atoms in one state are refused.
[[nodiscard]] std::vector<std::vector<double>> block_kernel(const BlockContext& context, int draft_length);
// As above for a rule that first tries to keep the whole block by the ratio of joint probabilities, min(1, prod target(x_i) /
// draft(x_i)). If that fails, it goes back as block verification does: with the mass Z of (carry_i target - draft)+ after token
// i, the first i tokens are kept with Z / (Z + 1 - carry_i) (Zhou et al. 2026, arXiv 2601.05724, as implemented in its program).
// The kept prefix depends on all later tokens, so every drafted path is walked: the branches of one path to the power of
// draft_length.
[[nodiscard]] std::vector<std::vector<double>> joint_ratio_kernel(const BlockContext& context, int draft_length);
// Calls f(kept, final) for every way in which such a round from `state` ends: the numbers of the branches that are kept, and the
// mass of each branch as the final token, for every prefix of every drafted path.
void each_joint_ratio_end(const BlockContext& context, int draft_length, int state,
                          const std::function<void(std::span<const int> kept, std::span<const double> final)>& f);
// Distribution of accepted for a round that starts in `state`.
[[nodiscard]] RoundDistribution block_distribution(const BlockContext& context, int draft_length, int state = 0);
struct Bracket {
  double low = 0.0;
  double high = 0.0;
};
// Bounds of P(accepted >= i), i = 1..draft_length, for a pool of any vocabulary. E[carry_i] is concave in every earlier ratio and
// carry. So replacing the values in a cell by their mean raises it, and spreading them to the cell's ends lowers it.
// O(draft_length cells^2 + vocab); 1024 cells give an error of about 1e-6.
[[nodiscard]] std::vector<Bracket> block_tails(std::span<const WeightedPair> pool, int draft_length, int cells = 1024);

}  // namespace specsim::theory
