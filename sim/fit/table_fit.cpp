#include "sim/fit/table_fit.h"

#include "sim/base/token.h"
#include "sim/fit/spread_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace specsim::fit {

namespace {

constexpr double kLeastNoise = 0.02;
constexpr double kMostNoise = 300.0;
constexpr double kMostNoiseSpread = 3.0;
constexpr double kMostDrift = 300.0;
constexpr double kPoint = 0.01;

// Where a function that falls crosses zero; the nearer end where it does not.
double falls_to_zero(const std::function<double(double)>& f, double low, double high) {
  constexpr int kSteps = 40;
  if (!(f(low) > 0.0)) return low;
  if (!(f(high) < 0.0)) return high;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = 0.5 * (low + high);
    (f(middle) > 0.0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double falls_to_zero_by_logarithm(const std::function<double(double)>& f, double low, double high) {
  return std::exp(falls_to_zero([&](double x) { return f(std::exp(x)); }, std::log(low), std::log(high)));
}

// What the table says that the parameters are to meet.
struct Aims {
  double first = 0.0;  // share of the first rank at the first depth
  double ranks = 0.0;  // share of all ranks there together
  std::size_t rank_count = 1;
  std::vector<double> chain;  // first ranks by depth
  bool tells_sigma = false;
};

Aims aims_of(const TableRecord& record) {
  const std::vector<std::vector<double>>& acceptance = record.acceptance;
  Aims aims{acceptance[0][0],
            std::accumulate(acceptance[0].begin(), acceptance[0].end(), 0.0),
            acceptance[0].size(),
            {},
            record.kind.tells_sigma()};
  for (const std::vector<double>& row : acceptance) aims.chain.push_back(row[0]);
  return aims;
}

// Of a chain with these rates: 1 + a1 + a1 a2 + ...
double tokens_of(const std::vector<double>& rates) {
  double tokens = 1.0;
  double reached = 1.0;
  for (const double rate : rates) tokens += reached *= rate;
  return tokens;
}

// Depths that the context process tells apart: the last stands for what is beyond.
std::size_t depths_of(std::size_t rows) { return std::clamp<std::size_t>(rows, 2, kMaxDraftLength); }

double first_share(const RankShares& shares, const TableValues& values, std::size_t block) {
  return shares.at(values, 0, 1, block)[0];
}

// The first rank of the first depth is met by the noise, or by the target's sigma and then the noise.
TableValues meet_first(const RankShares& shares, const Aims& aims, double spread, std::size_t block) {
  TableValues values;
  values.noise_spread = spread;
  const auto noise_from = [&](double least) {
    const auto off = [&](double noise) { return first_share(shares, {noise, spread, 0.0, values.sigma}, block) - aims.first; };
    values.noise = falls_to_zero_by_logarithm(off, least, kMostNoise);
  };
  noise_from(kLeastNoise);
  if (!aims.tells_sigma || values.noise >= kSurestNoise) return values;
  values.noise = kSurestNoise;
  values.sigma = falls_to_zero_by_logarithm(
      [&](double sigma) {
        return aims.first - first_share(shares, {kSurestNoise, spread, 0.0, sigma}, block);
      },
      values.sigma, RankShares::kMostSigma);
  if (values.sigma >= RankShares::kMostSigma) noise_from(kLeastNoise);
  return values;
}

std::vector<double> chain_of(const RankShares& shares, const TableValues& values, std::size_t depths, std::size_t block) {
  std::vector<double> rates;
  for (std::size_t depth = 0; depth < depths; ++depth) rates.push_back(shares.at(values, depth, 1, block)[0]);
  return rates;
}

TableValues meet(const RankShares& shares, const Aims& aims, std::size_t block) {
  double spread = TableValues().noise_spread;
  // More spread at the same first rank: more contexts where no rank is right.
  if (aims.rank_count > 1)
    spread = falls_to_zero(
        [&](double own) {
          const std::vector<double> ranks = shares.at(meet_first(shares, aims, own, block), 0, aims.rank_count, block);
          return std::accumulate(ranks.begin(), ranks.end(), 0.0) - aims.ranks;
        },
        0.0, kMostNoiseSpread);
  TableValues values = meet_first(shares, aims, spread, block);
  if (aims.chain.size() < 2) return values;
  const double wanted = tokens_of(aims.chain);
  const auto off = [&](double drift) {
    TableValues own = values;
    own.drift = drift;
    return tokens_of(chain_of(shares, own, aims.chain.size(), block)) - wanted;
  };
  constexpr double kLeastDrift = 1e-3;
  values.drift = off(kLeastDrift) > 0.0 ? falls_to_zero_by_logarithm(off, kLeastDrift, kMostDrift) : 0.0;
  return values;
}

double deviation_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0.0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / (n - 1.0));
}

// Standard errors from fits with each of the independent parts of the contexts.
void add_errors(TableFit& fit, const RankShares& shares, const Aims& aims) {
  std::vector<double> sigma;
  std::vector<double> noise;
  std::vector<double> spread;
  std::vector<double> drift;
  for (std::size_t block = 0; block < RankShares::kBlocks; ++block) {
    const TableValues values = meet(shares, aims, block);
    sigma.push_back(values.sigma);
    noise.push_back(values.noise);
    spread.push_back(values.noise_spread);
    drift.push_back(values.drift);
  }
  const double root = std::sqrt(static_cast<double>(RankShares::kBlocks));
  if (fit.sigma.fitted) fit.sigma.error = deviation_of(sigma) / root;
  if (fit.noise.fitted) fit.noise.error = deviation_of(noise) / root;
  if (fit.noise_spread.fitted) fit.noise_spread.error = deviation_of(spread) / root;
  if (fit.drift.fitted) fit.drift.error = deviation_of(drift) / root;
}

void add_slopes(TableFit& fit, const RankShares& shares, const Aims& aims) {
  if (fit.noise.value > kLeastNoise && fit.noise.value < kMostNoise) {
    Aims other = aims;
    other.first += kPoint;
    const TableValues moved = meet(shares, other, RankShares::kAll);
    if (fit.noise.fitted) fit.noise_per_point = moved.noise - fit.noise.value;
    if (fit.sigma.fitted) fit.sigma_per_point = moved.sigma - fit.sigma.value;
  }
  if (fit.noise_spread.fitted && fit.noise_spread.value > 0.0 && fit.noise_spread.value < kMostNoiseSpread) {
    Aims other = aims;
    other.ranks += kPoint;
    fit.noise_spread_per_point = meet(shares, other, RankShares::kAll).noise_spread - fit.noise_spread.value;
  }
  if (fit.drift.fitted && fit.drift.value > 0.0) {
    Aims other = aims;
    for (std::size_t depth = 1; depth < other.chain.size(); ++depth) other.chain[depth] += kPoint;
    fit.drift_per_point = meet(shares, other, RankShares::kAll).drift - fit.drift.value;
  }
}

FigureRole role_of(const Aims& aims, std::size_t depth, std::size_t rank) {
  if (depth == 0) return rank == 0 || aims.rank_count == 2 ? FigureRole::fitted : FigureRole::together;
  if (rank > 0) return FigureRole::predicted;
  return aims.chain.size() == 2 ? FigureRole::fitted : FigureRole::together;
}

void add_figures(TableFit& fit, const RankShares& shares, const Aims& aims, const TableValues& values) {
  const std::vector<std::vector<double>>& table = fit.record.acceptance;
  std::size_t same = 0;  // figures of the last depth that was added
  for (std::size_t depth = 0; depth < table.size(); ++depth) {
    // Depths that neither the table nor the fit tells apart are one line.
    if (depth > 1 && table[depth] == table[depth - 1] && values.drift == 0.0) {
      for (std::size_t i = fit.figures.size() - same; i < fit.figures.size(); ++i) fit.figures[i].last = depth + 1;
      continue;
    }
    const std::vector<double> found = shares.at(values, depth, table[depth].size());
    for (std::size_t rank = 0; rank < found.size(); ++rank)
      fit.figures.push_back({depth + 1, depth + 1, rank + 1, table[depth][rank], found[rank], role_of(aims, depth, rank)});
    same = found.size();
  }
}

std::string told(const SpreadParameter& one) {
  if (!one.fitted) return "default, not told by the table";
  return one.value > 0.0 ? fmt::format("+- {:.2g} of the fit's own contexts", one.error) : "at its end, 0";
}

}  // namespace

const char* to_text(FigureRole role) {
  switch (role) {
    case FigureRole::fitted:
      return "fitted";
    case FigureRole::together:
      return "fitted together";
    case FigureRole::predicted:
      return "predicted";
  }
  return "";
}

TableFit fit_table(const TableRecord& record, std::uint64_t seed) {
  std::size_t ranks = 1;
  for (const std::vector<double>& row : record.acceptance) ranks = std::max(ranks, row.size());
  const RankShares shares(record.kind, ranks, seed);
  const Aims aims = aims_of(record);
  const TableValues values = meet(shares, aims, RankShares::kAll);
  TableFit fit;
  fit.record = record;
  fit.sigma = {values.sigma, kUnknown, values.sigma > SpreadValues().sigma};
  fit.noise = {values.noise, kUnknown, !fit.sigma.fitted || values.noise != kSurestNoise};
  fit.noise_spread = {values.noise_spread, kUnknown, aims.rank_count > 1};
  fit.drift = {values.drift, kUnknown, aims.chain.size() > 1};
  add_errors(fit, shares, aims);
  add_slopes(fit, shares, aims);
  const std::vector<double> found = shares.at(values, 0, aims.rank_count);
  fit.moments.push_back({"rank 1 at depth 1", aims.first, found[0]});
  if (fit.noise_spread.fitted)
    fit.moments.push_back({fmt::format("no rank of {} at depth 1", aims.rank_count), 1.0 - aims.ranks,
                           1.0 - std::accumulate(found.begin(), found.end(), 0.0)});
  if (fit.drift.fitted)
    fit.moments.push_back({fmt::format("chain of {}, tokens per round", aims.chain.size()), tokens_of(aims.chain),
                           tokens_of(chain_of(shares, values, aims.chain.size(), RankShares::kAll))});
  add_figures(fit, shares, aims, values);
  return fit;
}

const TableFigure& TableFit::worst() const {
  return *std::max_element(figures.begin(), figures.end(), [](const TableFigure& a, const TableFigure& b) {
    return std::abs(a.fit - a.table) < std::abs(b.fit - b.table);
  });
}

std::string TableFit::out_of_reach() const {
  constexpr double kShare = 0.002;   // probability
  constexpr double kTokens = 0.005;  // tokens per round, relative
  for (const TableMoment& one : moments)
    // Rates that rise with depth are nothing that drift does: the figures by depth tell by how much it misses them.
    if (!(drift.value == 0.0 && one.fit < one.table && &one != &moments.front()) &&
        std::abs(one.fit - one.table) > (one.table > 1.0 ? kTokens * one.table : kShare))
      return fmt::format("{} is {:.4f} in the table, and {} {:.4f} can be reached", one.name, one.table,
                         one.fit < one.table ? "at most" : "at least", one.fit);
  return "";
}

bool TableFit::tells_trees() const { return noise_spread.fitted && (record.kind.temperature == 0.0 || record.kind.likeliest); }

bool TableFit::tells_drawn() const { return !record.kind.tells_sigma(); }

std::string TableFit::warning() const {
  std::vector<std::string> lacks;
  if (!tells_trees())
    lacks.push_back(fmt::format(
        "does not tell {}: rankings of trees of likeliest tokens (tree_dynamic, siblings: top_k and their like) rest on a "
        "default",
        record.kind.temperature == 0.0 || record.kind.likeliest ? "how the draft's further ranks do" : "the target's sigma"));
  if (!tells_drawn())
    lacks.push_back(
        fmt::format("is of the draft's likeliest tokens, and does not tell how surely the draft knows the target's "
                    "other ones: rankings of drawn drafts (selection: sampled, block, without_replacement and their "
                    "like) rest on {}",
                    sigma.fitted ? "sigma and value, of which it tells one" : "the target's sigma, a default"));
  if (lacks.empty()) return "";
  return fmt::format("the table {}; they are left out of {}", fmt::join(lacks, "; and it "), kSpreadFile);
}

std::string TableFit::left_out() const {
  std::string lines;
  if (!tells_trees())
    lines += fmt::format(
        "# Left out: trees of likeliest tokens (tree_dynamic, siblings: top_k and their like), which rest on a "
        "default: the table\n# does not tell {}.\n",
        record.kind.temperature == 0.0 || record.kind.likeliest ? "how the draft's further ranks do" : "the target's sigma");
  if (!tells_drawn())
    lines +=
        "# Left out: drafts that are drawn (selection: sampled, block, without_replacement and their like), which the table, of "
        "chosen\n# ones, does not tell of.\n";
  return lines;
}

std::string TableFit::yaml() const {
  const SpreadValues family;
  std::string context =
      "# Positions that have nothing to do with one another: persistence and between_requests are defaults, not told by the "
      "table.\n";
  context += drift.value > 0.0 ? fmt::format("context: {{process: text, drift: {:.6g}, depths: {}}}\n", drift.value,
                                             depths_of(record.acceptance.size()))
                               : "context: {process: text}\n";
  const std::string of_sigma =
      sigma.fitted ? fmt::format("The target's sigma: {}; its spread: default, not told by the table", told(sigma))
                   : "The target's sigma and its spread: default, not told by the table";
  return spread_experiment({.heading = fmt::format("# Distributions whose acceptance is that of a table{}, at temperature {:g}.\n"
                                                   "# The draft's value: {}; its spread: {};\n# drift: {}. {}.\n",
                                                   record.about.empty() ? "" : ", " + record.about, record.kind.temperature,
                                                   noise.fitted ? told(noise) : "that of the surest published draft",
                                                   told(noise_spread), told(drift), of_sigma),
                            .vocab = kVocab,
                            .values = {sigma.value, family.sigma_spread, noise.value, noise_spread.value},
                            .temperature = record.kind.temperature,
                            .chosen = record.kind.likeliest,
                            .context = context,
                            .trees = tells_trees(),
                            .left_out = left_out()});
}

}  // namespace specsim::fit
