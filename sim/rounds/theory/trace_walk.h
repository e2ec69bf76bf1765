// Rounds over recorded texts: each position accepts with a probability of its own, and rounds never go from one request into the
// next.
//
// The positions of all requests stand one after the other, and starts[i] is the first of request i. A request's rounds begin at
// its first position, and none begins where its end could cut a block of draft_length drafts and the token behind them: of rounds
// that are cut, leaving out the ones that are would leave out the longest. So a request is a finite walk, and by renewal the mean
// over all rounds of many requests is the ratio of what one request emits to the rounds that it takes.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::theory {

// The distribution of accepted of a round that begins at each position; the last position's successor is the first.
[[nodiscard]] std::vector<RoundDistribution> trace_distributions(std::span<const double> alpha, int draft_length);

// Means over a record's requests, each as likely as any other, of one request's totals.
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

// distributions: as above, or of any rule whose rounds depend on where they begin alone; all of draft_length.
[[nodiscard]] RecordTotals record_totals(std::span<const RoundDistribution> distributions, std::span<const std::uint32_t> starts,
                                         int draft_length);

}  // namespace specsim::theory
