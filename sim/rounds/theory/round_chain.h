// A sequence of rounds, each of which depends on the previous one through a state: that of the text (see modulated.h), and a
// policy's memory of the sequence.
//
// Matrices are states x states, row-major; entry (s, s') is for an event at a position of state s that leads to state s'.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/length_policies.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/trees.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace specsim::theory {

using StateMatrix = std::vector<double>;

struct RoundKernel {
  int states = 1;
  std::vector<StateMatrix> moves;  // [accepted]: this many tokens are accepted and the next round starts in s'

  RoundKernel() = default;
  RoundKernel(int of_states, int draft_length);
  [[nodiscard]] int draft_length() const { return static_cast<int>(moves.size()) - 1; }
  [[nodiscard]] double& at(int accepted, int from, int to) {
    const auto row = static_cast<std::size_t>(from) * static_cast<std::size_t>(states);
    return moves[static_cast<std::size_t>(accepted)][row + static_cast<std::size_t>(to)];
  }
  [[nodiscard]] RoundDistribution distribution(int state) const;  // the distribution of accepted
};

// How a rule that walks down a tree treats the children of a node.
struct NodeMoves {
  std::vector<StateMatrix> accept;  // [rank]: the child of that rank is accepted
  std::vector<StateMatrix> stop;    // [rank]: the part of it after which nothing was drafted; empty: none
  // The distribution of the final token if all children are rejected. Empty: the rule is lossless, and it is the target's
  // remaining mass.
  StateMatrix final_token;
};

// by_depth: nodes at each depth, deeper ones use the last entry; target: moves by the target's own token. O(nodes states^3).
[[nodiscard]] RoundKernel walked_kernel(const TreeShape& tree, int states, const std::vector<NodeMoves>& by_depth,
                                        const StateMatrix& target);

// Distribution of accepted of a round that starts at state 0 of an automaton whose state is the number of tokens since.
using RoundOfPath = std::function<RoundDistribution(const Automaton& path)>;
// Distributions of states that move by `transition` whatever the tokens are. A round may look at all its positions before the
// number of accepted tokens is known. Positions that are drafted again were seen before, so the state that carries over is the
// window of the next draft_length positions' states. `distributions` has no successors.
struct WindowRounds {
  RoundKernel kernel;         // over windows, states^draft_length of them
  std::vector<double> start;  // distribution of the first round's window
  // Distributions of accepted by the first position's state, if later positions do not matter.
  std::optional<std::vector<RoundDistribution>> by_state;
};
[[nodiscard]] WindowRounds window_rounds(const Automaton& distributions, const StateMatrix& transition,
                                         std::span<const double> start, int draft_length, const RoundOfPath& round);

// `rounds` rounds of one sequence that starts in a state of distribution `start`. kernels: one, or with a policy one per draft
// length. nullopt: the policy's memory takes more than 2^16 values.
[[nodiscard]] std::optional<RunMoments> run_moments(const std::vector<RoundKernel>& kernels, const LengthRule* policy,
                                                    std::span<const double> start, int rounds);

}  // namespace specsim::theory
