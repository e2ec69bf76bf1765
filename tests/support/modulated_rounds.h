// Figures of rounds in a moving context that only tests compare with.
#pragma once

#include "sim/rounds/theory/modulated.h"
#include "sim/rounds/theory/state_matrices.h"
#include "sim/rounds/theory/stationary.h"

#include <vector>

namespace specsim::theory {

// Distribution of accepted for a round whose first position's state has distribution `start`.
inline RoundDistribution round_distribution(const Modulation& modulation, std::span<const double> start, int draft_length) {
  return expected_totals(modulation, start, draft_length, 1).distribution;
}

// states x states, row-major: the same for each start state.
inline std::vector<double> round_transition(const Modulation& modulation, int draft_length) {
  std::vector<double> transition;
  for (int s = 0; s < modulation.states; ++s) {
    Vector start(index_of(modulation.states), 0.0);
    start[index_of(s)] = 1.0;
    const Vector row = next_start(modulation, start, draft_length);
    transition.insert(transition.end(), row.begin(), row.end());
  }
  return transition;
}

// Stationary distribution of the state at the start of a round.
inline std::vector<double> stationary_start(const Modulation& modulation, int draft_length) {
  return stationary_distribution(round_transition(modulation, draft_length), index_of(modulation.states));
}

// Figures per round of an endless sequence (rounds = 1 in the totals).
inline SequenceTotals long_run(const Modulation& modulation, int draft_length) {
  return expected_totals(modulation, stationary_start(modulation, draft_length), draft_length, 1);
}
inline double long_run_tokens_per_round(const Modulation& modulation, int draft_length) {
  return long_run(modulation, draft_length).tokens_per_round();
}

}  // namespace specsim::theory
