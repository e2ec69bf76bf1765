// Rounds driven by a finite-state context: exact distributions, totals over a finite sequence, long-run figures and variances.
//
// The state belongs to the text position. A round drafts from its start state. The state after its last emitted token is the
// start state of the next round, so a hard position that rejected stays hard. This is the theory of a Markov renewal process
// with the round as the step; the formulas are derived from the kernel
//   K_j(s, s') = P(accepted = j, next round starts in s' | round starts in s)
//              = accept_0 ... accept_{j-1} reject_j (j < draft_length),  accept_0 ... accept_{draft_length-1} bonus.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::theory {

struct Modulation {
  int states = 0;
  // accept[j], reject[j]: states x states, row-major, for draft position j; a vector of size 1 applies to every position. Entry
  // (s, s'): at a position in state s, the draft token is accepted (rejected) and the next text position is in state s'.
  std::vector<std::vector<double>> accept;
  std::vector<std::vector<double>> reject;
  std::vector<double> bonus;  // states x states: the move made by the bonus token
};

// Throws InvariantBroken unless shapes fit draft_length, entries are >= 0, and every row of accept_j + reject_j and of
// bonus sums to 1 within 1e-9. The functions below do this on entry.
void check_modulation(const Modulation& modulation, int draft_length);

// The state moves by `transition` (states x states) at each text position, whatever the tokens are; state s accepts with
// probability alpha[s], or alpha[j][s] at draft position j.
[[nodiscard]] Modulation hidden_regimes(std::span<const double> alpha, const std::vector<double>& transition);
[[nodiscard]] Modulation hidden_regimes(const std::vector<std::vector<double>>& alpha_by_depth,
                                        const std::vector<double>& transition);

// Distribution of accepted for a round that starts in each state.
[[nodiscard]] std::vector<RoundDistribution> round_distribution_by_state(const Modulation& modulation, int draft_length);

// Distribution of the next round's start state given this round's. Does no checks, since it is called for every round of a
// sequence.
[[nodiscard]] std::vector<double> next_start(const Modulation& modulation, std::span<const double> start, int draft_length);

// Expectations over one sequence.
struct SequenceTotals {
  double rounds = 0.0;
  double emitted = 0.0;
  std::vector<double> tries;           // per draft position: rounds in which it was reached, hence judged
  std::vector<double> accepted;        // per draft position: rounds in which it was accepted
  std::vector<double> rounds_started;  // per state
  RoundDistribution distribution;      // distribution of accepted of a round picked uniformly among the sequence's rounds

  [[nodiscard]] double tokens_per_round() const { return emitted / rounds; }
  [[nodiscard]] double alpha() const;  // try-weighted: accepted / tries over all positions; NaN at draft_length 0
};

// A sequence of exactly `rounds` >= 1 rounds whose first starts in a state of distribution `start`. Exact for the finite horizon.
[[nodiscard]] SequenceTotals expected_totals(const Modulation& modulation, std::span<const double> start, int draft_length,
                                             int rounds);

// Exact variance of the sum of reward[accepted] (size draft_length + 1) over one sequence of exactly `rounds` rounds. Reward j +
// 1 gives emitted_variance().
[[nodiscard]] double reward_variance(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds,
                                     std::span<const double> reward);
[[nodiscard]] double emitted_variance(const Modulation& modulation, std::span<const double> start, int draft_length, int rounds);

// Standard error of emitted / rounds over `sequences` independent sequences of `rounds` rounds each.
[[nodiscard]] double tokens_per_round_standard_error(const Modulation& modulation, std::span<const double> start,
                                                     int draft_length, int rounds, double sequences);

}  // namespace specsim::theory
