// Requests that draw their own parameters, or whose context moves, and emit equally many tokens: exact by renewal, and the effect
// of pooling them.
#pragma once

#include "sim/rounds/theory/modulated.h"
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

  [[nodiscard]] double tokens_per_round() const;  // whole rounds only
};

// One type, request_tokens >= 1: u(n) = P(some round ends after n tokens) obeys u(n) = sum over e of P(emitted = e) u(n - e).
[[nodiscard]] RequestTotals request_totals(const RoundDistribution& distribution, int request_tokens);
// The mixture by weight. The ratios of many pooled requests converge to the ratios of these expectations.
[[nodiscard]] RequestTotals request_totals(std::span<const RequestType> types, int request_tokens);

// Standard error of whole_tokens / whole_rounds pooled over `requests` independent requests, each of a type drawn by
// weight (delta method, exact second moments by the same renewal recursion).
[[nodiscard]] double tokens_per_round_standard_error(std::span<const RequestType> types, int request_tokens, double requests);

// Limit of tokens per round for many tokens per request: the harmonic mean of E[emitted] by weight.
[[nodiscard]] double equal_tokens_limit(std::span<const RequestType> types);

// Requests that emit equally many tokens while their context moves: exact by renewal, with the state of the text.
struct MovingRequests {
  RequestTotals totals;   // expectations per request, as for requests that keep their context
  double tries = 0.0;     // judged positions of all rounds, including cut ones
  double accepted = 0.0;  // accepted ones among them
  double residual = 0.0;  // variance, over requests, of whole_tokens - tokens_per_round whole_rounds

  // The standard error of whole_tokens / whole_rounds pooled over `requests` independent requests (delta method).
  [[nodiscard]] double tokens_per_round_standard_error(double requests) const;
};

// A request begins in a state of distribution `start` (size states, sums to 1) and ends with `request_tokens` >= 1 tokens,
// possibly within a round; drafting is not shortened near the end. O(request_tokens draft_length states^2). u_n(s) = P(a round
// ends after n tokens, and the next begins in s) obeys u_n = sum over e of u_{n-e} K_{e-1}, with the kernels K of modulated.h.
[[nodiscard]] MovingRequests moving_requests(const Modulation& modulation, std::span<const double> start, int draft_length,
                                             int request_tokens);

// Tokens per round of requests with several constant alphas, and what summary figures give instead. All requests have equally
// (and very) many tokens.
struct PoolingFigures {
  double equal_tokens = 0.0;     // the truth
  double equal_rounds = 0.0;     // arithmetic mean of E[emitted]
  double mean_alpha = 0.0;       // mean over the requests' weights
  double at_mean_alpha = 0.0;    // the constant-alpha formula at mean_alpha
  double pooled_alpha = 0.0;     // accepted / tries pooled over the requests: what a log shows
  double at_pooled_alpha = 0.0;  // the constant-alpha formula at pooled_alpha
};
// alpha and weight of equal size >= 1.
[[nodiscard]] PoolingFigures pooling_figures(std::span<const double> alpha, std::span<const double> weight, int draft_length);

}  // namespace specsim::theory
