// The output of rounds that are alike and independent of each other, against what one of them emits.
#pragma once

#include "sim/rounds/theory/round_tokens.h"

#include <cstdint>
#include <span>

namespace specsim::judge {

// p-value of so many emitted tokens by class in `rounds` rounds: of their distance from the mean by their covariance, which is
// chi-squared with the covariance's rank. Classes of few tokens are pooled. A token of a class that is never emitted, and counts
// that must be what they are and differ, give p = 0. NaN: nothing to test.
[[nodiscard]] double round_output_p(const theory::TokenMoments& tokens, std::span<const std::uint64_t> output,
                                    std::uint64_t rounds);

}  // namespace specsim::judge
