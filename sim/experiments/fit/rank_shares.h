// The share of positions at which a draft's candidate of each rank is accepted, on contexts of the family of
// docs/results/language.md.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::fit {

// Mean acceptance in each kind of stretch: halves by entropy (open) times halves by draft quality (hard), all equally likely.
using StretchRates = std::array<double, 4>;

// The sampling setup that a table's ranks refer to.
struct RankKind {
  double temperature = 0.0;  // divides the logits of target and draft
  // Above temperature 0: true if the candidates are the draft's likeliest tokens, of which the target draws one (a chain with
  // selection argmax). False if the draft draws siblings without replacement, which are judged in turn; a chain drafts the
  // first. At temperature 0 the candidates are the likeliest tokens in both cases.
  bool likeliest = false;

  // The target's probability of its likeliest token bounds the acceptance of chosen drafts. Their acceptance therefore depends
  // on the target's sigma.
  [[nodiscard]] bool determines_sigma() const { return likeliest && temperature > 0.0; }
};

struct TableValues {
  double noise = 1.0;
  double noise_spread = 0.7;
  double drift = 0.0;  // parameter of context process `text`
  double sigma = SpreadValues().sigma;
  double persistence = 0.0;  // parameter of context process `text`
};

// Noise, its spread and drift combine to one normal number for a position's draft logits. A context depends on them only through
// its standard deviation, the "deviation". So shares are worked out once per deviation, on simulated contexts with the family's
// target, and a mean over contexts is an integral over the deviation. The choice of a draft's likeliest tokens depends only on
// the deviation in units of sigma. The target's probabilities for them depend on sigma over the temperature, so shares of chosen
// drafts are worked out for larger sigmas too.
class RankShares {
 public:
  static constexpr double kMostSigma = 8.0 * 42.0;  // for kinds with determines_sigma()
  static constexpr std::size_t kBlocks = 16;
  static constexpr std::size_t kAll = kBlocks;  // all blocks together

  // `seed`: contexts of different seeds are independent.
  RankShares(const RankKind& kind, std::size_t ranks, std::uint64_t seed = 0);
  // [rank], at depth 0, 1, ...; from one of kBlocks independent parts of the contexts, or from all.
  [[nodiscard]] std::vector<double> at(const TableValues& values, std::size_t depth, std::size_t ranks,
                                       std::size_t block = kAll) const;

  // Shares of the first rank by kind of stretch: the outer index is the half by entropy (open), the inner one by draft quality
  // (hard).
  [[nodiscard]] StretchRates by_stretch(const TableValues& values, std::size_t depth, std::size_t block = kAll) const;

 private:
  [[nodiscard]] double& node(std::size_t block, std::size_t sigma, std::size_t rank, std::size_t deviation) {
    return shares_[((block * sigmas_ + sigma) * ranks_ + rank) * kNodes + deviation];
  }
  [[nodiscard]] double& half_node(std::size_t block, std::size_t sigma, std::size_t half, std::size_t deviation) {
    return halves_[((block * sigmas_ + sigma) * 2 + half) * kNodes + deviation];
  }
  // Interpolates a row of kNodes deviations. Rows of larger sigmas follow at `stride`; `sigma_steps` is the distance in nodes
  // from the first.
  [[nodiscard]] double interpolated(const double* row, std::size_t stride, double sigma_steps, double log_deviation) const;

  static constexpr std::size_t kNodes = 44;  // deviations, evenly spaced in their logarithm
  std::size_t ranks_;
  std::size_t sigmas_;          // the family's sigma and larger ones, evenly spaced in the logarithm
  std::vector<double> halves_;  // first rank: [block and all][sigma][half of the targets, the more certain one last][deviation]
  std::vector<double> shares_;  // [block and all][sigma][rank][deviation, in units of sigma over the family's]
};

// Shared by all callers in this process, since the shares take seconds to compute.
const RankShares& rank_shares(const RankKind& kind, std::size_t ranks, std::uint64_t seed = 0);

}  // namespace specsim::fit
