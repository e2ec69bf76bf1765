// Distributions over a vocabulary: spans of probabilities that sum to 1.
#pragma once

#include "sim/foundation/base/token.h"

#include <span>
#include <vector>

namespace specsim::math {

// Sets probabilities below 2^-1022 to zero. Such subnormal numbers have few significant digits, or none. Quotients of two of them
// are meaningless, and decisions, residuals and divergences depend on such quotients. No sample of any size can distinguish them
// from zero. Code that makes a distribution calls this last; normalise() does so too.
void drop_subnormal(std::span<double> distribution);

// Divides by the sum and then drops subnormal numbers; SPECSIM_CHECKs that the sum is positive and finite.
void normalise(std::span<double> weights);

// Turns logits into probabilities in place (largest logit subtracted first, so nothing overflows).
void softmax(std::span<double> logits);

// The token of the largest probability; ties to the lowest token.
Token argmax(std::span<const double> distribution);

// The `most` tokens of the largest probabilities, in decreasing order; ties: the lower token first.
std::vector<Token> likeliest(std::span<const double> distribution, std::size_t most);

// All mass on one token.
void point_mass(std::span<double> distribution, Token token);

// sum over x of min(a, b): 1 - the total variation distance.
double overlap(std::span<const double> a, std::span<const double> b);

// -sum of p ln p, in nats.
double entropy(std::span<const double> distribution);

// Divides the logits by `temperature` > 0, i.e. distribution^(1 / temperature), normalised. Tokens of probability 0 stay at 0.
void apply_temperature(std::span<double> distribution, double temperature);

// Keeps the `k` likeliest tokens (ties: the lower token is kept) and renormalises. k >= vocabulary: nothing changes.
void keep_top_k(std::span<double> distribution, int k);

// Keeps the shortest run of likeliest tokens whose mass reaches `mass` (including the token that reaches it), renormalised.
void keep_top_p(std::span<double> distribution, double mass);

// Keeps tokens with probability at least `share` of the likeliest one's, renormalised.
void keep_min_p(std::span<double> distribution, double share);

// Sampling settings as servers have them, applied in this order: temperature, top-k, top-p, min-p. Neutral by default.
struct Sampling {
  double temperature = 1.0;  // 0: one-hot at the argmax
  int top_k = 0;             // 0: off
  double top_p = 1.0;
  double min_p = 0.0;

  bool operator==(const Sampling&) const = default;
};
void apply_sampling(std::span<double> distribution, const Sampling& sampling);

}  // namespace specsim::math
