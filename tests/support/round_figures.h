// Figures of one round at constant alpha that only tests compare with.
#pragma once

namespace specsim::theory {

// Variance of emitted at constant alpha: (a - (2k+1)(1-a) a^(k+1) - a^(2k+2)) / (1-a)^2 with a = alpha, k = draft_length,
// evaluated as a sum of positive covariances, since that quotient cancels near alpha = 1.
[[nodiscard]] double tokens_per_round_variance(double alpha, int draft_length);

// alpha^(draft_length+1): the expected tokens that one more drafted position adds to a round.
[[nodiscard]] double marginal_tokens(double alpha, int draft_length);

// -alpha^(draft_length+1) ln alpha, published as that marginal figure; it is not (.060 against .168 at alpha .7, length 4).
[[nodiscard]] double claimed_marginal_tokens(double alpha, int draft_length);

}  // namespace specsim::theory
