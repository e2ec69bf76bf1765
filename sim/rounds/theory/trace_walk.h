// Rounds over recorded texts: each position has its own acceptance probability, and rounds never continue from one request into
// the next.
//
// The positions of all requests are concatenated, and starts[i] is the first position of request i. A request's rounds begin at
// its first position. No round begins where the request's end could cut a block of draft_length draft tokens and the token after
// them: leaving out only the rounds that are cut would leave out the longest ones. So a request is a finite walk. By renewal, the
// mean over all rounds of many requests is the ratio of the tokens that one request emits to its rounds.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::theory {

// The distribution of accepted of a round that begins at each position; the last position is followed by the first.
[[nodiscard]] std::vector<RoundDistribution> trace_distributions(std::span<const double> alpha, int draft_length);

// Means of one request's totals over a record's requests, each equally likely.
struct RecordTotals {
  double rounds = 0.0;
  double emitted = 0.0;
  double accepted = 0.0;
  double tries = 0.0;
  // Expectations of squares and of the product.
  double rounds_squared = 0.0;
  double emitted_squared = 0.0;
  double rounds_emitted = 0.0;

  [[nodiscard]] double tokens_per_round() const { return emitted / rounds; }
  // The standard error of emitted / rounds, pooled over `requests` independent requests, by the delta method.
  [[nodiscard]] double tokens_per_round_standard_error(double requests) const;
};

// distributions: as above, or from any rule whose rounds depend only on where they begin; all of the same draft_length.
[[nodiscard]] RecordTotals record_totals(std::span<const RoundDistribution> distributions, std::span<const std::uint32_t> starts,
                                         int draft_length);

}  // namespace specsim::theory
