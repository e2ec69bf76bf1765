// Standard errors of a row's figures, from the spread between independent groups of sequences.
#include "sim/experiments/judge/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace specsim::judge {

namespace {

constexpr double kNoError = std::numeric_limits<double>::quiet_NaN();

// Standard error of sum y / sum x over independent groups by the delta method, from integers alone.
double ratio_error(std::uint64_t groups, std::uint64_t sum_x, std::uint64_t sum_y, std::uint64_t sum_xx, std::uint64_t sum_xy,
                   std::uint64_t sum_yy) {
  if (groups < 2 || sum_x == 0) return kNoError;
  const auto n = static_cast<double>(groups);
  const double ratio = static_cast<double>(sum_y) / static_cast<double>(sum_x);
  const double spread =
      static_cast<double>(sum_yy) - 2.0 * ratio * static_cast<double>(sum_xy) + ratio * ratio * static_cast<double>(sum_xx);
  return std::sqrt(std::max(spread, 0.0) * n / (n - 1.0)) / static_cast<double>(sum_x);
}

double freedom_of(const decode::Counts& counts) { return static_cast<double>(counts.groups) - 1.0; }

void add_part(decode::PartTotals& sum, const decode::PartTotals& part, std::uint64_t sign) {
  const auto add_all = [sign](std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& from) {
    if (to.empty()) to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) to[i] += sign * from[i];  // modulo 2^64: sign is 1 or the inverse of 1
  };
  sum.rounds += sign * part.rounds;
  sum.emitted += sign * part.emitted;
  sum.longest += sign * part.longest;
  add_all(sum.drafted, part.drafted);
  add_all(sum.passes.rounds, part.passes.rounds);
  add_all(sum.passes.rows, part.passes.rows);
}

// Logarithms of the figures of some of the run's rounds.
struct Logs {
  double tokens_per_round = 0.0;
  double speedup = 0.0;
};
Logs logs_of(const spec::Cell& cell, const decode::PartTotals& totals) {
  const auto rounds = static_cast<double>(totals.rounds);
  const double tokens = static_cast<double>(totals.emitted) / rounds;
  const double full_rate = cell.draft_length() > 0 ? static_cast<double>(totals.longest) / rounds : 0.0;
  return {std::log(tokens), std::log(cost::speedup(cell.round_time(full_rate, totals.drafted, totals.passes), tokens))};
}

}  // namespace

report::Estimate Row::alpha_estimate() const {
  if (std::isnan(alpha())) return {kNoError, kNoError, 0.0};
  return {alpha(),
          ratio_error(counts.groups, counts.sum_tries, counts.sum_accepted, counts.sum_tries_squared, counts.sum_tries_accepted,
                      counts.sum_accepted_squared),
          freedom_of(counts)};
}

report::Estimate Row::tokens_per_round_estimate() const {
  return {tokens_per_round(),
          ratio_error(counts.groups, counts.rounds, counts.emitted, counts.sum_rounds_squared, counts.sum_rounds_emitted,
                      counts.sum_emitted_squared),
          freedom_of(counts)};
}

// A speedup is tokens per round over the mean time of a round, and that time depends on what the same rounds drafted and
// accepted. Each part of the groups contributes to the logarithm of either figure; the contribution comes from the run without
// that part (the jackknife; Efron and Tibshirani 1993, ch. 11). The speedup's error has two independent terms. One is slope
// times the error of tokens per round, which is known from all groups. The other comes from the parts' times; it is 0 if all
// rounds take the same time.
report::Estimate Row::speedup_estimate() const {
  const report::Estimate tokens = tokens_per_round_estimate();
  const double speedup = tokens.value * speedup_per_token();
  if (std::isnan(speedup) || std::isnan(tokens.error)) return {speedup, kNoError, 0.0};
  std::vector<decode::PartTotals> parts;
  decode::PartTotals all;
  for (std::size_t i = 0; i < decode::kParts; ++i) {
    decode::PartTotals part = counts.part(i);
    if (part.rounds == 0) continue;
    add_part(all, part, 1);
    parts.push_back(std::move(part));
  }
  const auto n = static_cast<double>(parts.size());
  if (parts.size() < 3) return {speedup, kNoError, 0.0};
  const Logs whole = logs_of(*cell, all);
  std::vector<Logs> influence;
  double squares = 0.0;
  double products = 0.0;
  for (const decode::PartTotals& part : parts) {
    add_part(all, part, ~std::uint64_t{0});
    const Logs without = logs_of(*cell, all);
    add_part(all, part, 1);
    const double rest = 1.0 - static_cast<double>(part.rounds) / static_cast<double>(all.rounds);
    const Logs own{rest * (whole.tokens_per_round - without.tokens_per_round), rest * (whole.speedup - without.speedup)};
    squares += own.tokens_per_round * own.tokens_per_round;
    products += own.tokens_per_round * own.speedup;
    influence.push_back(own);
  }
  const double slope = squares > 0.0 ? products / squares : 0.0;
  double rest = 0.0;
  for (const Logs& own : influence) rest += std::pow(own.speedup - slope * own.tokens_per_round, 2);
  const double of_tokens = std::pow(slope * tokens.error / tokens.value, 2);
  const double of_times = rest * n / (n - 2.0);
  const double variance = of_tokens + of_times;
  // Welch and Satterthwaite's degrees of freedom of a sum of two independent variances.
  const double shares = of_tokens * of_tokens / tokens.freedom + of_times * of_times / (n - 2.0);
  return {speedup, speedup * std::sqrt(variance), shares > 0.0 ? variance * variance / shares : tokens.freedom};
}

}  // namespace specsim::judge
