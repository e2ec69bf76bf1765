// Whether 95 % intervals of alpha, tokens per round and speedup hold the truth in 95 of 100 runs, whatever correlates rounds:
// hard and easy stretches of the text, a draft length for the whole batch, rows that the batch shares.
//
// Runs of a cell share their distributions and differ in their random numbers. The truth is the mean of all runs, whose own error
// is a twelfth to a seventeenth of a run's: it lowers the coverage by less than .002.
#include "tests/support/coverage.h"
#include "sim/experiments/judge/rows.h"
#include "sim/rounds/decode/simulator.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/families/context.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace specsim::coverage_test {

namespace {

enum class Figure { alpha, tokens_per_round, speedup };
constexpr std::array kFigures = {Figure::alpha, Figure::tokens_per_round, Figure::speedup};

report::Estimate figure_of(const judge::Row& row, Figure figure) {
  switch (figure) {
    case Figure::alpha:
      return row.alpha_estimate();
    case Figure::tokens_per_round:
      return row.tokens_per_round_estimate();
    case Figure::speedup:
      break;
  }
  return row.speedup_estimate();
}

// How many of the runs' intervals hold the mean of all runs; nullopt if the figure has no error, such as the tokens of a round
// without drafts.
std::optional<tests::Coverage> held_by(const std::vector<judge::Row>& runs, Figure figure) {
  double mean = 0.0;
  for (const judge::Row& row : runs) mean += figure_of(row, figure).value / static_cast<double>(runs.size());
  tests::Coverage held;
  bool any = false;
  for (const judge::Row& row : runs) {
    const report::Estimate estimate = figure_of(row, figure);
    if (std::isnan(estimate.error)) return std::nullopt;
    any = any || estimate.error > 1e-12 * mean;
    held.add(estimate.value - mean, report::half_width(estimate));
  }
  return any ? std::optional(held) : std::nullopt;
}

// Standard deviation of the runs' values over their stated error, both squared and averaged.
double true_over_stated(const std::vector<judge::Row>& runs, Figure figure) {
  double mean = 0.0;
  double stated = 0.0;
  const auto n = static_cast<double>(runs.size());
  for (const judge::Row& row : runs) mean += figure_of(row, figure).value / n;
  double squares = 0.0;
  for (const judge::Row& row : runs) {
    squares += std::pow(figure_of(row, figure).value - mean, 2) / (n - 1.0);
    stated += std::pow(figure_of(row, figure).error, 2) / n;
  }
  return std::sqrt(squares / stated);
}

// Counts every sequence as its own group, as if the batch did not correlate them.
class SequencesApart final : public decode::RoundSink {
 public:
  explicit SequencesApart(int draft_length) : longest_(static_cast<std::uint32_t>(draft_length)) {}
  void accepted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t drafts) override { accepted_ = drafts; }
  void drafted(std::uint32_t /*lane*/, std::uint32_t /*round*/, std::uint32_t /*nodes*/, bool whole) override { whole_ = whole; }
  void round(std::uint32_t lane, std::uint32_t /*round*/, std::span<const Token> emitted, std::uint32_t /*next*/) override {
    decode::GroupTotals& own = totals_[lane];
    own.number = lane;
    ++own.rounds;
    own.full += whole_ ? 1 : 0;
    own.longest += accepted_ == longest_ ? 1 : 0;
    own.emitted += emitted.size();
  }
  void add_to(decode::Counts& counts) const {
    for (const auto& [lane, own] : totals_) counts.add_group(own, true);
  }

 private:
  std::uint32_t longest_;
  std::uint32_t accepted_ = 0;
  bool whole_ = false;
  std::map<std::uint32_t, decode::GroupTotals> totals_;
};

enum class Unit { group, sequence };

// `runs` runs of the cell, each with its own random numbers.
std::vector<judge::Row> runs_of(const tests::ReadyCell& ready, int runs, Unit unit = Unit::group) {
  const spec::Cell& cell = ready.cell();
  std::vector<judge::Row> rows(static_cast<std::size_t>(runs));
  for (int run = 0; run < runs; ++run) {
    judge::Row& row = rows[static_cast<std::size_t>(run)];
    row.cell = &cell;
    const rng::Key key = rng::make_key(cell.seed + static_cast<std::uint64_t>(run), cell.pairing_group);
    const decode::Simulator simulator(ready.preparation(), ready.prepared(), key, cell.draft_length(), cell.sequence_rounds);
    row.counts = simulator.empty_counts();
    for (std::uint64_t chunk = 0; chunk * simulator.chunk_size() < cell.work(); ++chunk) {
      if (unit == Unit::group) {
        simulator.run(chunk, cell.work(), row.counts);
        continue;
      }
      decode::Counts ignored = simulator.empty_counts();
      SequencesApart apart(cell.draft_length());
      simulator.run(chunk, cell.work(), ignored, &apart);
      apart.add_to(row.counts);
    }
  }
  return rows;
}

// Stretches of 100 tokens that the draft knows well, and of 100 that it does not.
constexpr const char* kStretches =
    "{process: regimes, sequence_rounds: 32, states: [{target: {family: explicit, probabilities: [0.7, 0.2, 0.1]}, draft: "
    "{family: "
    "explicit, probabilities: [0.6, 0.3, 0.1]}}, {target: {family: explicit, probabilities: [0.7, 0.2, 0.1]}, draft: {family: "
    "explicit, probabilities: "
    "[0.2, 0.3, 0.5]}}], transition: [[0.99, 0.01], [0.01, 0.99]]}";

std::string yaml_of(const std::string& context, const std::string& decode, const std::string& more) {
  return fmt::format(
      "{{experiment: coverage, seed: 20261128, pair: {{vocab: 3, target: {{family: dirichlet, concentration: 0.7}}, draft: "
      "{{from: target, transform: logit_noise, value: 1.5}}}}, context: {}, decode: {}, {}}}",
      context, decode, more);
}

constexpr const char* kRatio = "{model: ratio, cost_ratio: 0.15}";
// Every verified token takes time, so that a policy of shared rows cuts chains.
constexpr const char* kRowsCost =
    "{model: affine, target_fixed_ms: 4, target_ms_per_token: 0.5, draft_fixed_ms: 0.5, draft_ms_per_token: 0}";

std::string with_policy(const std::string& policy, int batch, int rounds, const char* cost = kRatio) {
  return yaml_of(kStretches, fmt::format("{{drafter: {{kind: chain, draft_length: 6}}, verifier: token, policy: {}}}", policy),
                 fmt::format("rounds: {}, cost: {}, workload: {{batch: {}}}", rounds, cost, batch));
}

void check_coverage(const std::string& name, const std::string& yaml, int runs, std::map<Figure, tests::Coverage>& pooled) {
  const tests::ReadyCell ready(yaml);
  const std::vector<judge::Row> rows = runs_of(ready, runs);
  for (const Figure figure : kFigures) {
    const std::optional<tests::Coverage> held = held_by(rows, figure);
    if (!held) continue;
    INFO(name << ", figure " << static_cast<int>(figure) << ": " << held->text() << ", true over stated "
              << true_over_stated(rows, figure));
    CHECK(held->right());
    pooled[figure].add(*held);
  }
}

// A context process as in a config. All processes are listed; a new one that is missing fails the test.
const std::map<std::string, std::string>& processes() {
  static const std::map<std::string, std::string> list = {
      {"fixed", "{process: fixed, sequence_rounds: 32}"},
      {"iid", "{process: iid, pool: 16, sequence_rounds: 32}"},
      {"markov", "{process: markov, order: 1, sequence_rounds: 32}"},
      {"regimes", kStretches},
      {"text", "{process: text, persistence: 0.88, between_requests: 0.1, sequence_rounds: 32}"},
      {"by_depth",
       "{process: by_depth, sequence_rounds: 32, drafts: [{from: target, transform: mix_noise, value: 0.1}, {from: "
       "target, transform: mix_noise, value: 0.5}]}"},
      {"requests",
       "{process: requests, request_tokens: 40, types: [{draft: {from: target, transform: mix_noise, value: 0.2}}, "
       "{draft: {from: target, transform: mix_noise, value: 0.9}}]}"},
      {"copy", "{process: copy, prompt_tokens: 20, sequence_rounds: 32}"},
      {"trace", "{process: trace, file: tests/data/trace_long.jsonl}"},
      {"acceptance_table", "{process: acceptance_table, selection: sampled, acceptance: [[0.7], [0.5]], sequence_rounds: 32}"}};
  return list;
}

const std::map<std::string, std::string>& policies() {
  static const std::map<std::string, std::string> list = {{"adaedl", "{kind: adaedl}"},
                                                          {"adaptive_verification", "{kind: adaptive_verification}"},
                                                          {"additive", "{kind: additive}"},
                                                          {"bandit", "{kind: bandit}"},
                                                          {"confidence", "{kind: confidence}"},
                                                          {"confidence_roc", "{kind: confidence_roc}"},
                                                          {"ema_tiers", "{kind: ema_tiers, tiers: [1, 3, 5]}"},
                                                          {"entropy", "{kind: entropy, most: 0.9}"},
                                                          {"goodput", "{kind: goodput}"},
                                                          {"goodput_per_sequence", "{kind: goodput_per_sequence}"},
                                                          {"oracle", "{kind: oracle}"},
                                                          {"ratio_tiers", "{kind: ratio_tiers, tiers: [1, 3, 6]}"},
                                                          {"specdec_pp", "{kind: specdec_pp}"},
                                                          {"throughput_aware", "{kind: throughput_aware}"},
                                                          {"table", "{kind: table, table: [[1, 4, 4], [5, 64, 2]]}"}};
  return list;
}

}  // namespace

TEST_CASE("intervals under a length for the batch cover the truth, and those over sequences do not", "[stat]") {
  constexpr int kRuns = 200;
  const tests::ReadyCell ready(with_policy("{kind: goodput}", 32, 16384));
  const std::vector<judge::Row> rows = runs_of(ready, kRuns);
  for (const Figure figure : kFigures) {
    const std::optional<tests::Coverage> held = held_by(rows, figure);
    REQUIRE(held);
    INFO("figure " << static_cast<int>(figure) << ": " << held->text());
    CHECK(held->right());
  }
  CHECK(rows[0].counts.groups == rows[0].counts.sequences / 32);
  // The mutant: every sequence counts as independent.
  const std::vector<judge::Row> apart = runs_of(ready, kRuns, Unit::sequence);
  CHECK(apart[0].counts.emitted == rows[0].counts.emitted);
  const std::optional<tests::Coverage> held = held_by(apart, Figure::tokens_per_round);
  REQUIRE(held);
  INFO("sequences as independent: " << held->text());
  CHECK_FALSE(held->right());
}

TEST_CASE("every interval of run covers the truth, in all contexts and under all policies", "[stat][.slow]") {
  constexpr int kRuns = 300;
  std::map<Figure, tests::Coverage> pooled;
  for (const auto& entry : families::context_processes().entries()) {
    INFO(entry.info.name << " is not among the processes of this test");
    REQUIRE(processes().count(entry.info.name) == 1);
  }
  for (const auto& [name, context] : processes())
    check_coverage(name,
                   yaml_of(context, "{drafter: {kind: chain, draft_length: 3}, verifier: token}",
                           "rounds: 4096, cost: {model: ratio, cost_ratio: 0.1}"),
                   kRuns, pooled);
  for (const auto& entry : draft::policies().entries()) {
    INFO(entry.info.name << " is not among the policies of this test");
    REQUIRE(policies().count(entry.info.name) == 1);
  }
  for (const auto& [name, policy] : policies())
    for (const int batch : {1, 8}) {
      if (name == "oracle" && batch > 1) continue;  // a bound of batches of one
      check_coverage(fmt::format("{}, batch {}", name, batch),
                     with_policy(policy, batch, 8192, name == "adaptive_verification" ? kRowsCost : kRatio), kRuns, pooled);
    }
  for (const auto& [figure, sum] : pooled) {
    INFO("figure " << static_cast<int>(figure) << ": " << sum.text());
    CHECK(sum.right());
    CHECK(sum.share() >= tests::kLeastCoverage);
    CHECK(sum.share() <= tests::kMostCoverage);
  }
  // The mutant: every sequence counts as independent.
  for (const char* policy : {"{kind: goodput}", "{kind: bandit}"}) {
    const tests::ReadyCell ready(with_policy(policy, 32, 32768));
    const std::optional<tests::Coverage> held = held_by(runs_of(ready, kRuns, Unit::sequence), Figure::tokens_per_round);
    REQUIRE(held);
    INFO(policy << ": " << held->text());
    CHECK_FALSE(held->right());
  }
}

}  // namespace specsim::coverage_test
