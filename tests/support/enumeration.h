// Exact enumeration for small vocabularies: every draft block, every branch of the rule, completed by further rounds.
//
// An independent reference: rules are written here from their papers and share nothing with the built-in verifiers.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/modulated.h"

#include <functional>
#include <vector>

namespace specsim::theory {

enum class Rule {
  plain,                   // no drafts: the target alone
  token,                   // accept with min(1, target / draft), else the residual (target - draft)+ (Leviathan 2022, Chen 2023)
  block,                   // block verification (Sun et al. 2024, arXiv 2403.10444)
  greedy,                  // accept the target's argmax, else emit it; lossless for one-hot targets only
  sample_match,            // the target samples, the draft token is kept while equal
  soft_argmax,             // drafts the argmax, judges it by the soft draft distribution: biased
  resample_target_mutant,  // token rule that resamples from the target instead of the residual: biased, accepted unchanged
};

enum class Drafting {
  sampled,
  argmax,  // lowest id among equals; the rule then gets the one-hot distribution, except soft_argmax, which always drafts so
};

struct RoundRule {
  Rule rule = Rule::token;
  int draft_length = 0;
  Drafting drafting = Drafting::sampled;
};

struct Enumeration {
  std::vector<double> joint;         // distribution of the first `tokens` emitted tokens, vocab^tokens in lexicographic order
  std::vector<double> target_joint;  // the same distribution for the target alone
  double largest_difference = 0.0;   // over the entries of the two
  RoundDistribution accepted;        // accepted tokens of the first round
  double expected_emitted = 0.0;     // emitted tokens of the first round
  std::vector<double> next_state;    // distribution of the state at the start of the second round
};

// Outcomes of positive probability of one round begun in `state`, ordered by their tokens.
[[nodiscard]] std::vector<RoundOutcome> round_outcomes(const Automaton& automaton, const RoundRule& rule, int state);

// Runs rounds from automaton.start until `tokens` >= 1 are out. vocab^tokens and vocab^draft_length are limited to 2^22.
[[nodiscard]] Enumeration enumerate(const Automaton& automaton, const RoundRule& rule, int tokens);

// The same for rounds given by their outcomes, with at most longest_accepted drafts, such as a tree's. `outcomes` is called once
// for each state that is reached.
[[nodiscard]] Enumeration enumerate_rounds(const Automaton& automaton,
                                           const std::function<std::vector<RoundOutcome>(int state)>& outcomes,
                                           int longest_accepted, int tokens);

// Distribution of the first `tokens` tokens of the target alone, vocab^tokens in lexicographic order.
[[nodiscard]] std::vector<double> target_joint_distribution(const Automaton& automaton, int tokens);

// The same rounds as a modulated context, from closed one-position masses (accepting x: min(target, draft); emitting x
// upon rejection: (target - draft)+, and so on): any number of rounds, large automata. Refuses plain and block.
[[nodiscard]] Modulation modulation_of(const Automaton& automaton, const RoundRule& rule);

}  // namespace specsim::theory
