// Tests the output of identically distributed, independent rounds against the theory of one round's tokens.
#pragma once

#include "sim/rounds/theory/round_tokens.h"

#include <cstdint>
#include <span>

namespace specsim::judge {

// p-value of the emitted tokens by class in `rounds` rounds. The statistic is their distance from the mean by their covariance,
// which is chi-squared with the covariance's rank. Classes with few tokens are pooled. A token of a class that is never emitted,
// or a count that differs although it has no variance, gives p = 0. NaN: nothing to test.
[[nodiscard]] double round_output_p(const theory::TokenMoments& tokens, std::span<const std::uint64_t> output,
                                    std::uint64_t rounds);

}  // namespace specsim::judge
