// The largest acceptance of several drafts from different distributions.
#pragma once

#include <span>

namespace specsim::theory {

// The largest acceptance that a lossless rule can have on drafts without replacement: 1 + min over H of target(H) - P(all drafts
// in H), over every subset; vocab <= 16.
[[nodiscard]] double optimal_acceptance_without_replacement(std::span<const double> target, std::span<const double> draft,
                                                            int drafts);

}  // namespace specsim::theory
