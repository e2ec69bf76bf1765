// The distribution of one round if positions accept independently, and its closed forms.
#pragma once

#include <span>
#include <vector>

namespace specsim::theory {

// Distribution of the accepted prefix length of a round.
struct RoundDistribution {
  std::vector<double> accepted;  // P(accepted = j), j = 0..draft_length

  [[nodiscard]] int draft_length() const { return static_cast<int>(accepted.size()) - 1; }
  [[nodiscard]] double mean_accepted() const;
  [[nodiscard]] double mean_emitted() const;      // mean_accepted + 1: the target adds one token to every round
  [[nodiscard]] double variance_emitted() const;  // equals the variance of accepted
  [[nodiscard]] double tail(int j) const;         // P(accepted >= j); 1 for j <= 0, 0 beyond draft_length
};

// A sequence's total over whole rounds: mean and variance of emitted tokens, means of accepted tokens and of tries.
struct RunMoments {
  double emitted = 0.0;
  double variance = 0.0;
  double accepted = 0.0;
  double tries = 0.0;  // judged positions, counted as on a chain of the round's draft length
};

// Every position accepts with probability alpha in [0, 1]: P(accepted = j) = alpha^j (1 - alpha), the rest at draft_length.
// (Leviathan et al. 2022, arXiv 2211.17192.) draft_length >= 0.
[[nodiscard]] RoundDistribution constant_alpha(double alpha, int draft_length);

// Position j accepts with probability alpha[j], given that it is reached; positions are independent. draft_length = size.
[[nodiscard]] RoundDistribution by_position(std::span<const double> alpha);

// (1 - alpha^(draft_length+1)) / (1 - alpha), mean emitted per round at constant alpha (Leviathan et al. 2022, equation 1).
[[nodiscard]] double tokens_per_round(double alpha, int draft_length);

// 1 + sum over j of alpha[0]...alpha[j]: mean emitted with fixed unequal positions, by the tails rather than the distribution.
[[nodiscard]] double tokens_per_round(std::span<const double> alpha);

}  // namespace specsim::theory
