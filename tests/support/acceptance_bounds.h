// Bounds of acceptance at one position, published and derived, and rules that only tests compare with.
//
// Distributions as in sim/rounds/theory/bounds.h.
#pragma once

#include "sim/rounds/theory/bounds.h"

namespace specsim::theory {

// Lower bounds of alpha = 1 - total variation by kl = KL(target || draft) >= 0, not below 0.
[[nodiscard]] double pinsker_alpha(double kl);            // 1 - sqrt(kl / 2)
[[nodiscard]] double bretagnolle_huber_alpha(double kl);  // 1 - sqrt(1 - e^-kl)

// (1 + total variation) / 2: the best probability of naming, from one token, which of two equally likely distributions drew it.
[[nodiscard]] double adversary_probability(double total_variation);

// Approximate E[L1(empirical distribution, distribution)] over `samples` draws: sqrt(2 / (pi samples)) sum sqrt(distribution (1 -
// distribution)), the normal limit of each cell; good where samples * distribution is large.
[[nodiscard]] double expected_empirical_l1(std::span<const double> distribution, double samples);

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
