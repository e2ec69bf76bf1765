// Requests that emit equally many tokens while their context moves: exact by renewal, the state of the text carried along.
#pragma once

#include "sim/rounds/theory/modulated.h"
#include "sim/rounds/theory/requests.h"

#include <span>

namespace specsim::theory {

struct MovingRequests {
  RequestTotals totals;   // expectations per request, as of requests that keep their context
  double tries = 0.0;     // judged positions of all rounds, cut ones too
  double accepted = 0.0;  // those of them that are
  double residual = 0.0;  // variance, over requests, of whole_tokens - tokens_per_round whole_rounds

  // The standard error of whole_tokens / whole_rounds pooled over so many independent requests (delta method).
  [[nodiscard]] double tokens_per_round_standard_error(double requests) const;
};

// A request begins in a state of distribution `start` (size states, sums to 1) and ends with `request_tokens` >= 1 tokens, within
// a round if need be; drafting is not shortened near the end. O(request_tokens draft_length states^2). u_n(s) = P(a round ends
// after n tokens, and the next begins in s) obeys u_n = sum over e of u_{n-e} K_{e-1}, with the kernels K of modulated.h.
[[nodiscard]] MovingRequests moving_requests(const Modulation& modulation, std::span<const double> start, int draft_length,
                                             int request_tokens);

}  // namespace specsim::theory
