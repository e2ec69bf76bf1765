// What a pair of distributions says about acceptance at one position: overlap, divergences, bounds, and exact one-position
// distributions.
//
// Distributions are vectors over the vocabulary, entries >= 0 that sum to 1 within 1e-9; pairs have equal size. Logarithms are
// natural.
#pragma once

#include <span>
#include <vector>

namespace specsim::theory {

// sum of min(target, draft): the probability that token verification accepts a sampled draft (Leviathan et al. 2022).
[[nodiscard]] double overlap(std::span<const double> target, std::span<const double> draft);
// Half the L1 distance, equal to 1 - overlap; summed from differences, so it stays accurate for nearly equal distributions.
[[nodiscard]] double total_variation(std::span<const double> target, std::span<const double> draft);
// sum of target ln(target / draft); infinite where the draft misses a token of the target.
[[nodiscard]] double kl_divergence(std::span<const double> target, std::span<const double> draft);
// sum of (draft - target)^2 / target, chi2(draft || target); infinite where the target misses a token of the draft.
[[nodiscard]] double chi_squared(std::span<const double> draft, std::span<const double> target);

// Lower bounds of alpha = 1 - total variation by kl = KL(target || draft) >= 0, not below 0.
[[nodiscard]] double pinsker_alpha(double kl);            // 1 - sqrt(kl / 2)
[[nodiscard]] double bretagnolle_huber_alpha(double kl);  // 1 - sqrt(1 - e^-kl)

// (1 + total variation) / 2: the best probability of naming, from one token, which of two equally likely distributions drew it.
[[nodiscard]] double adversary_probability(double total_variation);

// Approximate E[L1(empirical distribution, distribution)] over `samples` draws: sqrt(2 / (pi samples)) sum sqrt(distribution (1 -
// distribution)), the normal limit of each cell; good where samples * distribution is large.
[[nodiscard]] double expected_empirical_l1(std::span<const double> distribution, double samples);

// Index of the largest entry, the lowest among equals.
[[nodiscard]] int argmax(std::span<const double> distribution);

// Acceptance probabilities of other rules at one position.
[[nodiscard]] double sample_match_alpha(std::span<const double> target, std::span<const double> draft);  // sum target draft
[[nodiscard]] double argmax_draft_alpha(std::span<const double> target, std::span<const double> draft);  // target(argmax draft)

// Distribution of the token emitted at one position when the draft's argmax x is judged by target(x) / draft(x) with the *soft*
// draft probability, and the residual is taken from the soft draft (a published pseudocode): x is emitted with
// probability min(1, target(x) / draft(x)) instead of target(x).
[[nodiscard]] std::vector<double> soft_argmax_distribution(std::span<const double> target, std::span<const double> draft);
// Acceptance probability of that rule, and its total variation from the target.
[[nodiscard]] double soft_argmax_alpha(std::span<const double> target, std::span<const double> draft);
[[nodiscard]] double soft_argmax_bias(std::span<const double> target, std::span<const double> draft);

}  // namespace specsim::theory
