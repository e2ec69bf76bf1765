// A pair of distributions over a vocabulary, kept small for a trace.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::llm {

struct DistributionClasses {
  std::vector<double> target;
  std::vector<double> draft;
};

// The `tokens` likeliest under either distribution by themselves, the likeliest first (ties: the lower token), then the rest in
// four classes by target / draft: above 4, above 1, above 1/4, below. No class mixes tokens that the draft makes too likely with
// others, so the overlap stays what it was; the ratio of a token that is not kept by itself moves within its class.
DistributionClasses distribution_classes(std::span<const double> target, std::span<const double> draft, std::size_t tokens);

}  // namespace specsim::llm
