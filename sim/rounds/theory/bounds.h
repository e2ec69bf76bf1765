// Acceptance at one position for a pair of distributions: overlap, divergences, bounds, and exact one-position distributions.
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
// sum of target ln(target / draft); infinite if the draft lacks a token of the target.
[[nodiscard]] double kl_divergence(std::span<const double> target, std::span<const double> draft);
// sum of (draft - target)^2 / target, chi2(draft || target); infinite if the target lacks a token of the draft.
[[nodiscard]] double chi_squared(std::span<const double> draft, std::span<const double> target);

// Index of the largest entry, the lowest among equals.
[[nodiscard]] int argmax(std::span<const double> distribution);

}  // namespace specsim::theory
