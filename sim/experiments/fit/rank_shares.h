// What share of positions each rank of a draft's candidates gets, on contexts of the family of docs/results/language.md.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::fit {

// Mean acceptance in each kind of stretch: halves of what is open by halves of what is hard, all equally likely.
using StretchRates = std::array<double, 4>;

// What a table's ranks are of.
struct RankKind {
  double temperature = 0.0;  // divides the logits of target and draft
  // Above temperature 0: the draft's likeliest tokens, of which the target draws one (a chain of selection: argmax); else
  // siblings that the draft draws without replacement and that are judged in turn, of which the first is what a chain drafts. At
  // 0 both are the likeliest tokens.
  bool likeliest = false;

  // What the target gives its likeliest token bounds the acceptance of chosen drafts, so that they tell of its sigma.
  [[nodiscard]] bool tells_sigma() const { return likeliest && temperature > 0.0; }
};

struct TableValues {
  double noise = 1.0;
  double noise_spread = 0.7;
  double drift = 0.0;  // parameter of context process `text`
  double sigma = SpreadValues().sigma;
  double persistence = 0.0;  // parameter of context process `text`
};

// Noise, its spread and drift make one normal number of a position's draft logits, whose standard deviation is all that a context
// knows of them. So shares are worked out once by that deviation, of simulated contexts whose target is the family's own, and a
// mean over contexts is an integral over the deviation. Which tokens a draft finds likeliest goes by the deviation in units of
// sigma alone, and sigma over the temperature says what the target gives them: of such drafts shares are worked out for larger
// sigmas, too.
class RankShares {
 public:
  static constexpr double kMostSigma = 8.0 * 42.0;  // for kinds that tell of it
  static constexpr std::size_t kBlocks = 16;
  static constexpr std::size_t kAll = kBlocks;  // every block together

  // `seed`: contexts of other ones are independent.
  RankShares(const RankKind& kind, std::size_t ranks, std::uint64_t seed = 0);
  // [rank], at depth 0, 1, ...; of one of kBlocks independent parts of the contexts, or of all.
  [[nodiscard]] std::vector<double> at(const TableValues& values, std::size_t depth, std::size_t ranks,
                                       std::size_t block = kAll) const;

  // Of the first rank, by kind of stretch: what is open in halves, outer, and what is hard.
  [[nodiscard]] StretchRates by_stretch(const TableValues& values, std::size_t depth, std::size_t block = kAll) const;

 private:
  [[nodiscard]] double& node(std::size_t block, std::size_t sigma, std::size_t rank, std::size_t deviation) {
    return shares_[((block * sigmas_ + sigma) * ranks_ + rank) * kNodes + deviation];
  }
  [[nodiscard]] double& half_node(std::size_t block, std::size_t sigma, std::size_t half, std::size_t deviation) {
    return halves_[((block * sigmas_ + sigma) * 2 + half) * kNodes + deviation];
  }
  // Of a row of kNodes deviations, and those of larger sigmas `stride` behind it; `sigma_steps`: nodes of sigma above the first.
  [[nodiscard]] double interpolated(const double* row, std::size_t stride, double sigma_steps, double log_deviation) const;

  static constexpr std::size_t kNodes = 44;  // deviations, evenly apart by their logarithm
  std::size_t ranks_;
  std::size_t sigmas_;          // the family's sigma and larger ones, evenly apart by their logarithm
  std::vector<double> halves_;  // [block and all][sigma][half of the targets, the surer one last][deviation], of the first rank
  std::vector<double> shares_;  // [block and all][sigma][rank][deviation, in units of sigma over the family's]
};

// The same shares for everybody in this process who asks for them: they take seconds to work out.
const RankShares& rank_shares(const RankKind& kind, std::size_t ranks, std::uint64_t seed = 0);

}  // namespace specsim::fit
