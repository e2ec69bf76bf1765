// Rounds over a recorded text: position after position accepts with a probability of its own, the first again behind the last.
#pragma once

#include "sim/theory/round_distribution.h"

#include <cstdint>
#include <span>

namespace specsim::theory {

// `rounds` rounds of a sequence that begins at one of `starts`, each as likely: expectation and variance by recursion over the
// rounds that are left, from every position at once.
[[nodiscard]] RunMoments trace_moments(std::span<const double> alpha, std::span<const std::uint32_t> starts, int draft_length,
                                       int rounds);

// The distribution of accepted of a round that begins at each position.
[[nodiscard]] std::vector<RoundDistribution> trace_distributions(std::span<const double> alpha, int draft_length);

}  // namespace specsim::theory
