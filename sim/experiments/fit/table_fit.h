// The synthetic pair of distributions that a published table of acceptance looks like: the family of docs/results/language.md,
// whose draft and drift are met as far as the table tells them.
#pragma once

#include "sim/experiments/fit/rank_shares.h"
#include "sim/experiments/fit/spread_parameter.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::fit {

struct TableRecord {
  std::vector<std::vector<double>> acceptance;  // [depth][rank], P(accepted, given that the parent is)
  RankKind kind;
  std::string about;  // where it is from, for the file's heading
};

// What a figure of the table is to the fit.
enum class FigureRole {
  fitted,     // met by a parameter
  together,   // its sum with others is: ranks of the first depth, the first ranks of the others in a chain
  predicted,  // none of it was used
};
const char* to_text(FigureRole role);

struct TableFigure {
  std::size_t depth = 1;  // from 1
  std::size_t last = 1;   // depth down to which the table and the fit stay the same
  std::size_t rank = 1;   // from 1
  double table = 0.0;
  double fit = 0.0;
  FigureRole role = FigureRole::predicted;
};

// A figure that was met: the likeliest token's share, that of all ranks together, a chain's tokens per round.
struct TableMoment {
  std::string name;
  double table = 0.0;
  double fit = 0.0;
};

struct TableFit {
  TableRecord record;
  SpreadParameter sigma;  // errors of these five are of the simulated contexts alone: a table does not say its own
  SpreadParameter noise;
  SpreadParameter noise_spread;
  SpreadParameter drift;
  SpreadParameter persistence;
  // How far each moves where its own figure is .01 higher (the drift's: every first rank behind the first), the others as they
  // are; NaN where it was not fitted or is at an end.
  double sigma_per_point = kUnknown;
  double noise_per_point = kUnknown;
  double noise_spread_per_point = kUnknown;
  double drift_per_point = kUnknown;
  std::vector<TableMoment> moments;
  std::vector<TableFigure> figures;

  // The figure with the largest |fit - table|.
  [[nodiscard]] const TableFigure& worst() const;
  // A figure that was to be met and that no parameters lead to, with the one that they do; "" where all were met.
  [[nodiscard]] std::string out_of_reach() const;
  // Whether that is a share at the first depth, or a tenth of a chain's tokens per round: no pair for the table. Less of a
  // chain's is told, by depth too, and left to the user.
  [[nodiscard]] bool fails() const;
  // Whether rankings of trees of likeliest tokens, and those of drafts that are drawn, rest on what the table told.
  [[nodiscard]] bool tells_trees() const;
  [[nodiscard]] bool tells_drawn() const;
  // Which methods the fit does not tell apart, "" where it does all.
  [[nodiscard]] std::string warning() const;
  // An experiment for `specsim run`. Its sweep leaves out what warning() names.
  [[nodiscard]] std::string yaml() const;

 private:
  [[nodiscard]] std::string left_out() const;
};

// The noise of a draft that knows its target as well as any of a paper's does: that of EAGLE's head on Vicuna-7B, whose published
// acceptance at temperature 0 asks for .78 under the family's sigma. Chosen drafts above temperature 0 whose acceptance asks for
// less are taken for those of a surer target.
inline constexpr double kSurestNoise = 0.8;

// The first rank of the first depth is met by the noise; the share that no rank of it gets by the noise's spread, where there are
// two ranks or more; the tokens per round of a chain as deep as the table by the drift, where there are two depths or more. Rates
// that rise with depth are nothing that drift does: of a chain of three depths or more the persistence is fitted instead, of four
// or more the noise's spread with it, so that rates by depth are as little off as they can be. Chosen drafts above temperature 0
// are accepted with what the target gives them, at most its likeliest token: where the family's target is too open for the first
// rank, its sigma rises and the noise stays at kSurestNoise. What no figure tells stays as docs/results/language.md has it: the
// target's sigma and its spread, positions that have nothing to do with one another, and a spread of .7. A parameter that the
// family cannot meet stays at its end; out_of_reach() says so, and the figures show by how much. `seed`: of the simulated
// contexts.
TableFit fit_table(const TableRecord& record, std::uint64_t seed = 0);

// A chain's acceptance by depth where positions of a text resemble the ones before them, as context process `text` has it.
// [depth]: P(accepted, given that the one before is) of rounds that draft as many tokens as `by_depth` has entries. Each position
// lies in the stretch of the one before with probability `persistence`, else in any. Rounds begin where the one before ended,
// more often in hard stretches than positions lie there: the law of their beginnings is the one that a round leads back to.
std::vector<double> rates_along_text(const std::vector<StretchRates>& by_depth, double persistence);

}  // namespace specsim::fit
