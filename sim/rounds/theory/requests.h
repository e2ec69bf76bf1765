// Requests that draw their own parameters and emit equally many tokens: exact by renewal, and what pooling them hides.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <span>
#include <vector>

namespace specsim::theory {

struct RequestType {
  double weight = 1.0;             // share of requests, any positive scale
  RoundDistribution distribution;  // every round of such a request follows it, independently
};

// Expectations per request. A round is cut if it would carry the request beyond request_tokens; one that ends exactly
// there is whole. Drafting is not shortened near the end.
struct RequestTotals {
  double whole_rounds = 0.0;
  double whole_tokens = 0.0;  // tokens emitted by whole rounds
  double cut_rounds = 0.0;    // probability that the last round is cut
  double cut_tokens = 0.0;    // tokens kept of cut rounds; whole_tokens + cut_tokens = request_tokens

  [[nodiscard]] double tokens_per_round() const;               // whole rounds only
  [[nodiscard]] double tokens_per_round_counting_cut() const;  // kept tokens over all rounds
};

// One type, request_tokens >= 1: u(n) = P(some round ends after n tokens) obeys u(n) = sum over e of P(emitted = e) u(n - e).
[[nodiscard]] RequestTotals request_totals(const RoundDistribution& distribution, int request_tokens);
// The mixture by weight: ratios of these expectations are what many pooled requests tend to.
[[nodiscard]] RequestTotals request_totals(std::span<const RequestType> types, int request_tokens);

// Standard error of whole_tokens / whole_rounds pooled over `requests` independent requests, each of a type drawn by
// weight (delta method, exact second moments by the same renewal recursion).
[[nodiscard]] double tokens_per_round_standard_error(std::span<const RequestType> types, int request_tokens, double requests);

// Limit of tokens per round for many tokens per request: the harmonic mean of E[emitted] by weight.
[[nodiscard]] double equal_tokens_limit(std::span<const RequestType> types);
// Requests given equal numbers of rounds instead: the arithmetic mean of E[emitted] by weight.
[[nodiscard]] double equal_rounds_mean(std::span<const RequestType> types);

// What one figure for several constant alphas gives, at equal (many) tokens per request.
struct PoolingFigures {
  double equal_tokens = 0.0;     // the truth
  double equal_rounds = 0.0;     // arithmetic mean of E[emitted]
  double mean_alpha = 0.0;       // mean over the requests' weights
  double at_mean_alpha = 0.0;    // the constant-alpha formula there
  double pooled_alpha = 0.0;     // accepted / tries pooled over the requests: what a log shows
  double at_pooled_alpha = 0.0;  // the constant-alpha formula there
};
// alpha and weight of equal size >= 1.
[[nodiscard]] PoolingFigures pooling_figures(std::span<const double> alpha, std::span<const double> weight, int draft_length);

}  // namespace specsim::theory
