#include "sim/experiments/fit/table_fit.h"

#include "sim/experiments/fit/spread_file.h"
#include "sim/foundation/base/token.h"
#include "sim/foundation/math/quantiles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <tuple>

namespace specsim::fit {

namespace {

constexpr double kLeastNoise = 0.02;
constexpr double kMostNoise = 300.0;
constexpr double kMostNoiseSpread = 3.0;
constexpr double kMostDrift = 300.0;
constexpr double kPoint = 0.01;
constexpr double kLeastKept = 1e-6;  // persistence
constexpr double kMostKept = 0.99;
constexpr double kRise = 0.002;  // tokens per round, relative: how much a chain must exceed one of equal depths
constexpr std::size_t kDepthsOfRise = 3;
constexpr std::size_t kDepthsOfSpread = 4;

// The zero of a falling function, to 2^-halvings of the interval; the nearer end if it has none.
double falls_to_zero(const std::function<double(double)>& f, double low, double high, int halvings = 40) {
  const double at_low = f(low);
  if (!(at_low > 0.0)) return low;
  const double at_high = f(high);
  if (!(at_high < 0.0)) return high;
  const auto known = [&](double x) { return x == low ? at_low : x == high ? at_high : f(x); };
  auto evaluations = static_cast<std::uintmax_t>(halvings) + 3;  // the two ends count, and one more
  const auto [from, to] = boost::math::tools::bisect(
      known, low, high, [](double, double) { return false; }, evaluations);
  return 0.5 * (from + to);
}

double falls_to_zero_by_logarithm(const std::function<double(double)>& f, double low, double high, int halvings = 40) {
  return std::exp(falls_to_zero([&](double x) { return f(std::exp(x)); }, std::log(low), std::log(high), halvings));
}

// The table's figures that the parameters are fitted to.
struct FitTargets {
  double first = 0.0;  // share of the first rank at the first depth
  double ranks = 0.0;  // share of all ranks there together
  std::size_t rank_count = 1;
  std::vector<double> chain;  // first ranks by depth
  bool determines_sigma = false;
  bool rises =
      false;  // the chain has more tokens per round than one whose depths all equal the first, and enough depths to show it
};

// Tokens per round of a chain with these rates: 1 + a1 + a1 a2 + ...
double tokens_of(const std::vector<double>& rates) {
  double tokens = 1.0;
  double reached = 1.0;
  for (const double rate : rates) tokens += reached *= rate;
  return tokens;
}

FitTargets fit_targets_of(const TableRecord& record) {
  const std::vector<std::vector<double>>& acceptance = record.acceptance;
  FitTargets fit_targets{acceptance[0][0],
                         std::accumulate(acceptance[0].begin(), acceptance[0].end(), 0.0),
                         acceptance[0].size(),
                         {},
                         record.kind.determines_sigma(),
                         false};
  for (const std::vector<double>& row : acceptance) fit_targets.chain.push_back(row[0]);
  const double alike = tokens_of(std::vector<double>(fit_targets.chain.size(), fit_targets.first));
  fit_targets.rises = fit_targets.rank_count == 1 && fit_targets.chain.size() >= kDepthsOfRise &&
                      tokens_of(fit_targets.chain) > (1.0 + kRise) * alike;
  return fit_targets;
}

// The number of depths that the context process distinguishes; the last covers all deeper ones.
std::size_t depths_of(std::size_t rows) { return std::clamp<std::size_t>(rows, 2, kMaxDraftLength); }

// A distribution over kinds of stretches.
using Law = StretchRates;

double sum_of(const Law& law) { return std::accumulate(law.begin(), law.end(), 0.0); }

Law step_on(const Law& law, double persistence) {
  const double any = (1.0 - persistence) * sum_of(law) / static_cast<double>(law.size());
  Law next = law;
  for (double& share : next) share = persistence * share + any;
  return next;
}

struct RoundLaws {
  std::vector<double> reached;  // [depth]: share of rounds that accept at least so many tokens
  Law next = {};                // start of the next round
};

RoundLaws go_round(const std::vector<StretchRates>& by_depth, double persistence, Law law) {
  RoundLaws round;
  round.reached.push_back(sum_of(law));
  const auto end = [&](const Law& own) {
    const Law moved = step_on(own, persistence);
    for (std::size_t s = 0; s < own.size(); ++s) round.next[s] += moved[s];
  };
  for (const StretchRates& rates : by_depth) {
    Law rejected = law;
    for (std::size_t s = 0; s < law.size(); ++s) {
      rejected[s] *= 1.0 - rates[s];
      law[s] *= rates[s];
    }
    end(rejected);
    round.reached.push_back(sum_of(law));
    law = step_on(law, persistence);
  }
  end(law);
  return round;
}

}  // namespace

std::vector<double> rates_along_text(const std::vector<StretchRates>& by_depth, double persistence) {
  constexpr std::size_t kStates = std::tuple_size_v<StretchRates>;
  std::array<Law, kStates> rounds;  // [from][to]
  for (std::size_t from = 0; from < kStates; ++from) {
    Law law = {};
    law[from] = 1.0;
    rounds[from] = go_round(by_depth, persistence, law).next;
  }
  // After 2^20 rounds every start has led to the same distribution.
  for (int doubling = 0; doubling < 20; ++doubling) {
    std::array<Law, kStates> twice = {};
    for (std::size_t from = 0; from < kStates; ++from)
      for (std::size_t by = 0; by < kStates; ++by)
        for (std::size_t to = 0; to < kStates; ++to) twice[from][to] += rounds[from][by] * rounds[by][to];
    rounds = twice;
  }
  const RoundLaws round = go_round(by_depth, persistence, rounds[0]);
  std::vector<double> rates;
  for (std::size_t depth = 0; depth < by_depth.size(); ++depth)
    rates.push_back(round.reached[depth] > 0.0 ? round.reached[depth + 1] / round.reached[depth] : 0.0);
  return rates;
}

namespace {

// [depth], for a chain of `depths` tokens.
std::vector<double> chain_of(const RankShares& shares, const TableValues& values, std::size_t depths, std::size_t block) {
  if (values.persistence > 0.0)  // without drift all depths are equal
    return rates_along_text(std::vector<StretchRates>(depths, shares.by_stretch(values, 0, block)), values.persistence);
  std::vector<double> rates;
  for (std::size_t depth = 0; depth < depths; ++depth) rates.push_back(shares.at(values, depth, 1, block)[0]);
  return rates;
}

double first_share(const RankShares& shares, const TableValues& values, std::size_t depths, std::size_t block) {
  return values.persistence > 0.0 ? chain_of(shares, values, depths, block)[0] : shares.at(values, 0, 1, block)[0];
}

// Fits the first rank of the first depth by the noise, or by the target's sigma and then the noise. `values` has the spread and
// the persistence.
TableValues meet_first(const RankShares& shares, const FitTargets& fit_targets, TableValues values, std::size_t block,
                       int halvings = 40) {
  const auto above = [&](double noise, double sigma) {
    TableValues own = values;
    own.noise = noise;
    own.sigma = sigma;
    return first_share(shares, own, fit_targets.chain.size(), block) - fit_targets.first;
  };
  const auto noise_at = [&](double sigma) {
    return falls_to_zero_by_logarithm([&](double noise) { return above(noise, sigma); }, kLeastNoise, kMostNoise, halvings);
  };
  values.noise = noise_at(values.sigma);
  if (!fit_targets.determines_sigma || values.noise >= kSurestNoise) return values;
  values.noise = kSurestNoise;
  values.sigma = falls_to_zero_by_logarithm([&](double sigma) { return -above(kSurestNoise, sigma); }, values.sigma,
                                            RankShares::kMostSigma, halvings);
  if (values.sigma >= RankShares::kMostSigma) values.noise = noise_at(values.sigma);
  return values;
}

// The squared error of the rates by depth, weighted by how often each depth is reached.
double misfit(const std::vector<double>& found, const std::vector<double>& wanted) {
  double squares = 0.0;
  double reached = 1.0;
  for (std::size_t depth = 0; depth < wanted.size(); ++depth) {
    squares += reached * (found[depth] - wanted[depth]) * (found[depth] - wanted[depth]);
    reached *= wanted[depth];
  }
  return squares;
}

// Fits rates that rise with depth, which happens when the deeper positions that rounds reach lie in easy stretches. The
// persistence is fitted to a chain's tokens per round, or the draft's spread at the persistence with the least error of rates by
// depth.
TableValues meet_rise(const RankShares& shares, const FitTargets& fit_targets, std::size_t block) {
  constexpr int kFewSteps = 22;  // to a millionth of the interval
  const double wanted = tokens_of(fit_targets.chain);
  const auto with = [&](double persistence, double spread) {
    TableValues own;
    own.persistence = persistence;
    own.noise_spread = spread;
    return meet_first(shares, fit_targets, own, block, kFewSteps);
  };
  const auto below = [&](const TableValues& own) {
    return wanted - tokens_of(chain_of(shares, own, fit_targets.chain.size(), block));
  };
  const double usual = TableValues().noise_spread;
  if (fit_targets.chain.size() < kDepthsOfSpread)
    return with(falls_to_zero([&](double kept) { return below(with(kept, usual)); }, kLeastKept, kMostKept, kFewSteps), usual);
  const auto at = [&](double kept) {
    return with(kept, falls_to_zero([&](double spread) { return below(with(kept, spread)); }, 0.0, kMostNoiseSpread, kFewSteps));
  };
  const auto off = [&](double kept) {
    return misfit(chain_of(shares, at(kept), fit_targets.chain.size(), block), fit_targets.chain);
  };
  // The best of a few nodes, then a ternary search between its neighbours.
  const std::vector<double> nodes = {kLeastKept, 0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, kMostKept};
  std::vector<double> found;
  for (const double kept : nodes) found.push_back(off(kept));
  const auto best = static_cast<std::size_t>(std::min_element(found.begin(), found.end()) - found.begin());
  double low = nodes[best > 0 ? best - 1 : 0];
  double high = nodes[std::min(best + 1, nodes.size() - 1)];
  constexpr int kThirds = 14;
  for (int step = 0; step < kThirds; ++step) {
    const double third = (high - low) / 3.0;
    if (off(low + third) > off(high - third))
      low += third;
    else
      high -= third;
  }
  return at(0.5 * (low + high));
}

TableValues meet(const RankShares& shares, const FitTargets& fit_targets, std::size_t block) {
  if (fit_targets.rises) return meet_rise(shares, fit_targets, block);
  TableValues values;
  // More spread at the same first rank means more contexts where no rank is right.
  if (fit_targets.rank_count > 1)
    values.noise_spread = falls_to_zero(
        [&](double spread) {
          TableValues own;
          own.noise_spread = spread;
          const std::vector<double> ranks =
              shares.at(meet_first(shares, fit_targets, own, block), 0, fit_targets.rank_count, block);
          return std::accumulate(ranks.begin(), ranks.end(), 0.0) - fit_targets.ranks;
        },
        0.0, kMostNoiseSpread);
  values = meet_first(shares, fit_targets, values, block);
  if (fit_targets.chain.size() < 2) return values;
  const double wanted = tokens_of(fit_targets.chain);
  const auto off = [&](double drift) {
    TableValues own = values;
    own.drift = drift;
    return tokens_of(chain_of(shares, own, fit_targets.chain.size(), block)) - wanted;
  };
  constexpr double kLeastDrift = 1e-3;
  values.drift = off(kLeastDrift) > 0.0 ? falls_to_zero_by_logarithm(off, kLeastDrift, kMostDrift) : 0.0;
  return values;
}

// Standard errors from fits to each of the independent parts of the contexts.
void add_errors(TableFit& fit, const RankShares& shares, const FitTargets& fit_targets) {
  std::vector<TableValues> by_block;
  for (std::size_t block = 0; block < RankShares::kBlocks; ++block) by_block.push_back(meet(shares, fit_targets, block));
  const auto set_error = [&](SpreadParameter TableFit::*parameter, double TableValues::*value) {
    if (!(fit.*parameter).fitted) return;
    std::vector<double> values;
    for (const TableValues& own : by_block) values.push_back(own.*value);
    (fit.*parameter).error = math::sample_deviation(values) / std::sqrt(static_cast<double>(RankShares::kBlocks));
  };
  set_error(&TableFit::sigma, &TableValues::sigma);
  set_error(&TableFit::noise, &TableValues::noise);
  set_error(&TableFit::noise_spread, &TableValues::noise_spread);
  set_error(&TableFit::drift, &TableValues::drift);
  set_error(&TableFit::persistence, &TableValues::persistence);
}

void add_slopes(TableFit& fit, const RankShares& shares, const FitTargets& fit_targets) {
  if (fit.noise.value > kLeastNoise && fit.noise.value < kMostNoise) {
    FitTargets other = fit_targets;
    other.first += kPoint;
    const TableValues moved = meet(shares, other, RankShares::kAll);
    if (fit.noise.fitted) fit.noise_per_point = moved.noise - fit.noise.value;
    if (fit.sigma.fitted) fit.sigma_per_point = moved.sigma - fit.sigma.value;
  }
  if (fit_targets.rank_count > 1 && fit.noise_spread.value > 0.0 && fit.noise_spread.value < kMostNoiseSpread) {
    FitTargets other = fit_targets;
    other.ranks += kPoint;
    fit.noise_spread_per_point = meet(shares, other, RankShares::kAll).noise_spread - fit.noise_spread.value;
  }
  if (fit.drift.fitted && fit.drift.value > 0.0) {
    FitTargets other = fit_targets;
    for (std::size_t depth = 1; depth < other.chain.size(); ++depth) other.chain[depth] += kPoint;
    fit.drift_per_point = meet(shares, other, RankShares::kAll).drift - fit.drift.value;
  }
}

FigureRole role_of(const FitTargets& fit_targets, std::size_t depth, std::size_t rank) {
  if (depth == 0) return rank == 0 || fit_targets.rank_count == 2 ? FigureRole::fitted : FigureRole::together;
  if (rank > 0) return FigureRole::predicted;
  return fit_targets.chain.size() == 2 ? FigureRole::fitted : FigureRole::together;
}

void add_figures(TableFit& fit, const RankShares& shares, const FitTargets& fit_targets, const TableValues& values) {
  const std::vector<std::vector<double>>& table = fit.record.acceptance;
  const std::vector<double> chain = chain_of(shares, values, table.size(), RankShares::kAll);
  std::size_t same = 0;  // figures of the depth added last
  for (std::size_t depth = 0; depth < table.size(); ++depth) {
    // Depths that are equal in both the table and the fit share one line.
    if (depth > 1 && table[depth] == table[depth - 1] && values.drift == 0.0 && values.persistence == 0.0) {
      for (std::size_t i = fit.figures.size() - same; i < fit.figures.size(); ++i) fit.figures[i].last = depth + 1;
      continue;
    }
    const std::vector<double> found =
        values.persistence > 0.0 ? std::vector<double>{chain[depth]} : shares.at(values, depth, table[depth].size());
    for (std::size_t rank = 0; rank < found.size(); ++rank)
      fit.figures.push_back({depth + 1, depth + 1, rank + 1, table[depth][rank], found[rank], role_of(fit_targets, depth, rank)});
    same = found.size();
  }
}

std::string told(const SpreadParameter& one) {
  if (!one.fitted) return "default, not determined by the table";
  return one.value > 0.0 ? fmt::format("+- {:.2g} of the fit's own contexts", one.error) : "at its end, 0";
}

}  // namespace

const char* to_text(FigureRole role) {
  return role == FigureRole::fitted ? "fitted" : role == FigureRole::together ? "fitted together" : "predicted";
}

TableFit fit_table(const TableRecord& record, std::uint64_t seed) {
  std::size_t ranks = 1;
  for (const std::vector<double>& row : record.acceptance) ranks = std::max(ranks, row.size());
  const RankShares& shares = rank_shares(record.kind, ranks, seed);
  const FitTargets fit_targets = fit_targets_of(record);
  const TableValues values = meet(shares, fit_targets, RankShares::kAll);
  TableFit fit;
  fit.record = record;
  fit.sigma = {values.sigma, kUnknown, values.sigma > SpreadValues().sigma};
  fit.noise = {values.noise, kUnknown, !fit.sigma.fitted || values.noise != kSurestNoise};
  fit.noise_spread = {values.noise_spread, kUnknown,
                      fit_targets.rank_count > 1 || (fit_targets.rises && fit_targets.chain.size() >= kDepthsOfSpread)};
  fit.drift = {values.drift, kUnknown, fit_targets.chain.size() > 1 && !fit_targets.rises};
  fit.persistence = {values.persistence, kUnknown, fit_targets.rises};
  add_errors(fit, shares, fit_targets);
  add_slopes(fit, shares, fit_targets);
  const std::vector<double> found = shares.at(values, 0, fit_targets.rank_count);
  fit.moments.push_back(
      {"rank 1 at depth 1", fit_targets.first, first_share(shares, values, fit_targets.chain.size(), RankShares::kAll)});
  if (fit_targets.rank_count > 1)
    fit.moments.push_back({fmt::format("no rank of {} at depth 1", fit_targets.rank_count), 1.0 - fit_targets.ranks,
                           1.0 - std::accumulate(found.begin(), found.end(), 0.0)});
  if (fit_targets.chain.size() > 1)
    fit.moments.push_back({fmt::format("chain of {}, tokens per round", fit_targets.chain.size()), tokens_of(fit_targets.chain),
                           tokens_of(chain_of(shares, values, fit_targets.chain.size(), RankShares::kAll))});
  add_figures(fit, shares, fit_targets, values);
  return fit;
}

const TableFigure& TableFit::worst() const {
  return *std::max_element(figures.begin(), figures.end(), [](const TableFigure& a, const TableFigure& b) {
    return std::abs(a.fit - a.table) < std::abs(b.fit - b.table);
  });
}

namespace {

// Whether a figure is missed: a probability by any amount, a chain's tokens per round by this share of them.
bool missed(const TableMoment& one, double share_of_tokens) {
  constexpr double kProbability = 0.002;
  return std::abs(one.fit - one.table) > (one.table > 1.0 ? share_of_tokens * one.table : kProbability);
}

}  // namespace

std::string TableFit::out_of_reach() const {
  constexpr double kTold = 0.005;
  for (const TableMoment& one : moments)
    if (missed(one, kTold))
      return fmt::format("{} is {:.4f} in the table, and {} {:.4f} can be reached", one.name, one.table,
                         one.fit < one.table ? "at most" : "at least", one.fit);
  return "";
}

bool TableFit::fails() const {
  constexpr double kRefused = 0.1;
  return std::any_of(moments.begin(), moments.end(), [](const TableMoment& one) { return missed(one, kRefused); });
}

bool TableFit::determines_trees() const {
  return record.acceptance[0].size() > 1 && (record.kind.temperature == 0.0 || record.kind.likeliest);
}

bool TableFit::determines_noise() const { return !record.kind.determines_sigma(); }

std::string TableFit::warning() const {
  std::vector<std::string> lacks;
  if (!determines_trees())
    lacks.push_back(fmt::format(
        "does not determine {}: rankings of trees of likeliest tokens (tree_dynamic, siblings: top_k and similar) depend on a "
        "default",
        record.kind.temperature == 0.0 || record.kind.likeliest ? "the acceptance of the draft's later ranks"
                                                                : "the target's sigma"));
  if (!determines_noise())
    lacks.push_back(
        fmt::format("describes the draft's likeliest tokens, and does not determine how well the draft knows the target's "
                    "other tokens: rankings of drawn drafts (selection: sampled, block, without_replacement and "
                    "similar) depend on {}",
                    sigma.fitted ? "sigma and value, of which it determines only one" : "the target's sigma, a default"));
  if (lacks.empty()) return "";
  return fmt::format("the table {}; {} omits them", fmt::join(lacks, "; and it "), kSpreadFile);
}

std::string TableFit::left_out() const {
  std::string lines;
  if (!determines_trees())
    lines += fmt::format(
        "# Omitted: trees of likeliest tokens (tree_dynamic, siblings: top_k and similar), which depend on a "
        "default: the table\n# does not determine {}.\n",
        record.kind.temperature == 0.0 || record.kind.likeliest ? "the acceptance of the draft's later ranks"
                                                                : "the target's sigma");
  if (!determines_noise())
    lines +=
        "# Omitted: drawn drafts (selection: sampled, block, without_replacement and similar). The table describes only "
        "chosen\n# drafts.\n";
  return lines;
}

std::string TableFit::yaml() const {
  const SpreadValues family;
  std::string context;
  if (persistence.fitted)
    context = fmt::format(
        "# Positions resemble the ones before them, since the table's rates rise with depth: persistence {}.\n"
        "# between_requests is a default, not determined by the table.\n"
        "context: {{process: text, persistence: {:.6g}}}\n",
        told(persistence), persistence.value);
  else
    context = fmt::format(
        "# Independent positions: persistence and between_requests are defaults, not determined by the "
        "table.\n"
        "context: {{process: text{}}}\n",
        drift.value > 0.0 ? fmt::format(", drift: {:.6g}, depths: {}", drift.value, depths_of(record.acceptance.size())) : "");
  const std::string of_sigma =
      sigma.fitted ? fmt::format("The target's sigma: {}; its spread: default, not determined by the table", told(sigma))
                   : "The target's sigma and its spread: default, not determined by the table";
  const std::string missed = out_of_reach();
  return spread_experiment({.heading = fmt::format("# Distributions with the acceptance of a table{}, at temperature {:g}.\n"
                                                   "{}# The draft's value: {}; its spread: {};\n# drift: {}. {}.\n",
                                                   record.about.empty() ? "" : ", " + record.about, record.kind.temperature,
                                                   missed.empty() ? "" : fmt::format("# Not matched: {}.\n", missed),
                                                   noise.fitted ? told(noise) : "that of the most accurate published draft",
                                                   told(noise_spread), told(drift), of_sigma),
                            .vocab = kVocab,
                            .values = {sigma.value, family.sigma_spread, noise.value, noise_spread.value},
                            .temperature = record.kind.temperature,
                            .chosen = record.kind.likeliest,
                            .context = context,
                            .trees = determines_trees(),
                            .left_out = left_out()});
}

}  // namespace specsim::fit
