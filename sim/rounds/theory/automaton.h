// Text as a small automaton: the input of every exact theory of rounds.
#pragma once

#include "sim/foundation/base/index.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace specsim::theory {

// Text as a deterministic automaton: distributions depend on the state, the state on the tokens.
struct Automaton {
  int vocab = 0;
  int states = 0;
  int start = 0;
  std::vector<int> next;                                // states x vocab, row-major: state after a token
  std::vector<std::vector<double>> target;              // [state][token]
  std::vector<std::vector<std::vector<double>>> draft;  // [draft position][state][token]; later positions use the last one

  [[nodiscard]] int after(int state, int token) const { return next[index_of(state) * index_of(vocab) + index_of(token)]; }
  [[nodiscard]] const std::vector<double>& draft_at(int position, int state) const {
    return draft[std::min(index_of(position), draft.size() - 1)][index_of(state)];
  }
};

// How a round ends.
struct RoundOutcome {
  std::vector<int> emitted;  // accepted drafts, then the final token
  int end_state = 0;
  double probability = 0.0;
};

// Throws InvariantBroken unless shapes fit, successors exist and every distribution is >= 0 and sums to 1 within 1e-9.
void check_automaton(const Automaton& automaton, int draft_length);

// Throws InvariantBroken unless entries are >= 0 and sum to 1 within 1e-9.
void check_distribution(std::span<const double> distribution);

// The tokens in order of decreasing probability (ties: the lowest id first); at most `most` of them.
[[nodiscard]] std::vector<int> likeliest(std::span<const double> distribution, std::size_t most);

}  // namespace specsim::theory
