// Fits the synthetic pair of distributions to a published acceptance table. The target is the family of
// docs/results/language.md; draft and drift are fitted as far as the table determines them.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"
#include "sim/experiments/fit/spread_parameter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::fit {

// The share of positions at which a draft's candidate of each rank is accepted, on contexts of the family of
// docs/results/language.md.

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

struct TableRecord {
  std::vector<std::vector<double>> acceptance;  // [depth][rank], P(accepted, given that the parent is)
  RankKind kind;
  std::string about;  // source of the table, for the file's heading
};

// How the fit uses a figure of the table.
enum class FigureRole {
  fitted,     // met by a parameter
  together,   // only a sum that includes it is fitted: the ranks of the first depth, or a chain's first ranks at later depths
  predicted,  // not used by the fit
};
const char* to_text(FigureRole role);

struct TableFigure {
  std::size_t depth = 1;  // from 1
  std::size_t last = 1;   // last depth at which table and fit are still the same
  std::size_t rank = 1;   // from 1
  double table = 0.0;
  double fit = 0.0;
  FigureRole role = FigureRole::predicted;
};

// A fitted figure: the likeliest token's share, the share of all ranks together, or a chain's tokens per round.
struct TableMoment {
  std::string name;
  double table = 0.0;
  double fit = 0.0;
};

struct TableFit {
  TableRecord record;
  SpreadParameter sigma;  // errors of these five are of the simulated contexts alone: a table does not state its own
  SpreadParameter noise;
  SpreadParameter noise_spread;
  SpreadParameter drift;
  SpreadParameter persistence;
  // The change of each parameter if its own figure rises by .01 and the others stay (the drift's figures: all first ranks at
  // later depths). NaN if it was not fitted or is at an end of its range.
  double sigma_per_point = kUnknown;
  double noise_per_point = kUnknown;
  double noise_spread_per_point = kUnknown;
  double drift_per_point = kUnknown;
  std::vector<TableMoment> moments;
  std::vector<TableFigure> figures;

  // The figure with the largest |fit - table|.
  [[nodiscard]] const TableFigure& worst() const;
  // A figure that no parameters can match, and the nearest reachable value; "" if all figures were matched.
  [[nodiscard]] std::string out_of_reach() const;
  // Whether the missed figure is a share at the first depth, or a tenth of a chain's tokens per round. Then no pair fits the
  // table. Smaller misses of a chain are only reported, by depth too, and the user decides.
  [[nodiscard]] bool fails() const;
  // Whether the table supports rankings of trees of likeliest tokens, and rankings of drawn drafts.
  [[nodiscard]] bool determines_trees() const;
  [[nodiscard]] bool determines_noise() const;
  // The methods that the fit cannot distinguish; "" if there are none.
  [[nodiscard]] std::string warning() const;
  // An experiment for `specsim run`. Its sweep omits the methods that warning() names.
  [[nodiscard]] std::string yaml() const;

 private:
  [[nodiscard]] std::string left_out() const;
};

// The noise of the draft that knows its target best among published ones: EAGLE's head on Vicuna-7B, whose published acceptance
// at temperature 0 requires .78 under the family's sigma. If chosen drafts above temperature 0 require less noise, the fit
// assumes a more certain target instead.
inline constexpr double kSurestNoise = 0.8;

// Fits these parameters:
// - the noise to the first rank of the first depth
// - the noise's spread to the share that no rank of that depth gets, if there are two ranks or more
// - the drift to the tokens per round of a chain as deep as the table, if there are two depths or more
//
// Drift cannot make rates rise with depth. For a rising chain of three depths or more the persistence is fitted instead; for
// four or more the noise's spread too, to minimise the error of the rates by depth. Chosen drafts above temperature 0 are
// accepted with the target's probability of the chosen token, at most that of its likeliest token. If the family's target has
// too much entropy for the first rank, its sigma rises and the noise stays at kSurestNoise. Parameters that no figure determines
// stay as in docs/results/language.md: the target's sigma and its spread, independent positions, and a noise spread of .7. A
// parameter that cannot be matched stays at the end of its range; out_of_reach() names it, and the figures show the difference.
// `seed`: of the simulated contexts.
TableFit fit_table(const TableRecord& record, std::uint64_t seed = 0);

// A chain's acceptance by depth if positions of a text resemble the ones before them, as in context process `text`. Returns
// [depth]: P(accepted, given that the one before is), for rounds that draft as many tokens as `by_depth` has entries. Each
// position lies in the stretch of the one before with probability `persistence`, otherwise in any stretch. A round begins where
// the one before ended, so rounds begin in hard stretches more often than positions lie there. The function uses the stationary
// distribution of these starts.
std::vector<double> rates_along_text(const std::vector<StretchRates>& by_depth, double persistence);

}  // namespace specsim::fit
