// Verification of a batch with one budget of rows: the budget and its division, compared with a search of all budgets, and the
// fit of acceptance compared with a known logistic function.
#include "sim/rounds/draft/length_policy.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace specsim::adaptive_verification_unit_test {

namespace {

using draft::LengthPolicy;
constexpr int kLongest = 4;
constexpr int kBatch = 3;

std::unique_ptr<LengthPolicy> policy_of(const std::string& confidence, const std::string& budget,
                                        const std::vector<double>& row_times, double rows = 1.0, double smoothing = 0.0) {
  Diagnostics diagnostics;
  const draft::PolicyEntry* entry = draft::policies().find("adaptive_verification");
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(
      fmt::format("{{confidence: {}, budget: {}, rows: {}, smoothing: {}}}", confidence, budget, rows, smoothing), "test",
      diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, "policy", diagnostics);
  auto policy = entry->make(arguments, {kLongest, {}, kBatch, row_times}, diagnostics);
  diagnostics.throw_if_any();
  return policy;
}

struct Round {
  std::vector<LengthPolicy::TokenForecast> forecasts{std::size_t{kBatch} * kLongest};
  std::vector<LengthPolicy::Chain> chains;
  std::vector<int> verified = std::vector<int>(kBatch);
  explicit Round(std::mt19937& generator) {
    std::uniform_real_distribution<double> any(0.2, 0.95);
    for (LengthPolicy::TokenForecast& own : forecasts) own = {any(generator), 4.0 * any(generator) - 1.0};
    for (std::size_t i = 0; i < kBatch; ++i) chains.push_back({i, std::span(forecasts).subspan(i * kLongest, kLongest)});
  }
  [[nodiscard]] double survival(std::size_t chain, int tokens) const {
    double product = 1.0;
    for (int k = 0; k < tokens; ++k) product *= chains[chain].forecasts[static_cast<std::size_t>(k)].overlap;
    return product;
  }
  [[nodiscard]] double expected(const std::vector<int>& lengths) const {
    double tokens = kBatch;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      for (int k = 1; k <= lengths[i]; ++k) tokens += survival(i, k);
    return tokens;
  }
};

// The lengths with the most expected tokens for a number of rows, from all possible ones.
std::vector<int> searched(const Round& round, int rows) {
  std::vector<int> best;
  std::vector<int> lengths(kBatch);
  for (lengths[0] = 0; lengths[0] <= kLongest; ++lengths[0])
    for (lengths[1] = 0; lengths[1] <= kLongest; ++lengths[1])
      for (lengths[2] = 0; lengths[2] <= kLongest; ++lengths[2])
        if (std::accumulate(lengths.begin(), lengths.end(), 0) == rows &&
            (best.empty() || round.expected(lengths) > round.expected(best)))
          best = lengths;
  return best;
}

}  // namespace

TEST_CASE("adaptive_verification: a budget goes to the tokens that are likeliest to survive, in any sequence") {
  std::mt19937 generator(20260719);
  const std::vector<double> flat(kBatch * kLongest + 1, 1.0);
  for (int tried = 0; tried < 50; ++tried)
    for (const int rows : {0, 1, 3, 6, 12}) {
      Round round(generator);
      const auto policy = policy_of("head", "rows", flat, rows / 3.0 + 0.01);
      LengthPolicy::Memory memory = policy->start();
      policy->share(memory, round.chains, round.verified);
      CHECK(round.verified == searched(round, rows));
    }
}

TEST_CASE("adaptive_verification: vLLM's budget depends on the round before, DSpark's on this one as far as it rises") {
  std::mt19937 generator(20260720);
  std::vector<double> times;  // a step at the fifth row, and more expensive rows after it
  for (int rows = 0; rows <= kBatch * kLongest; ++rows) times.push_back(1.0 + 0.12 * rows + (rows > 4 ? 0.15 : 0.0));
  const auto rate = [&](const Round& round, int rows) {
    return round.expected(searched(round, rows)) / times[static_cast<std::size_t>(rows)];
  };
  int differ = 0;
  const auto previous = policy_of("head", "previous", times);
  const auto early = policy_of("head", "early_stop", times);
  LengthPolicy::Memory memory = previous->start();
  std::unique_ptr<Round> before;
  for (int tried = 0; tried < 200; ++tried) {
    auto round = std::make_unique<Round>(generator);
    previous->share(memory, round->chains, round->verified);
    if (before != nullptr) {
      int best = 0;
      for (int rows = 1; rows <= kBatch * kLongest; ++rows)
        if (rate(*before, rows) > rate(*before, best)) best = rows;
      CHECK(round->verified == searched(*round, best));
    }
    int stop = 0;
    while (stop < kBatch * kLongest && rate(*round, stop + 1) > rate(*round, stop)) ++stop;
    std::vector<int> verified(kBatch);
    LengthPolicy::Memory none = early->start();
    early->share(none, round->chains, verified);
    CHECK(verified == searched(*round, stop));
    differ += verified != round->verified ? 1 : 0;
    before = std::move(round);
  }
  CHECK(differ > 20);
}

// vLLM after the merge of pull request 47808: sequences start as certain, and each round's confidences move the mean by a fifth.
TEST_CASE("adaptive_verification: with smoothing the budget depends on each sequence's moving mean of confidences") {
  std::mt19937 generator(20260722);
  std::vector<double> times;
  for (int rows = 0; rows <= kBatch * kLongest; ++rows) times.push_back(1.0 + 0.12 * rows);
  const auto smooth = policy_of("head", "previous", times, 1.0, 0.8);
  const auto last = policy_of("head", "previous", times);
  LengthPolicy::Memory memory = smooth->start();
  LengthPolicy::Memory other = last->start();
  std::vector<double> mean(kBatch * kLongest, 1.0);
  int differ = 0;
  for (int tried = 0; tried < 100; ++tried) {
    Round round(generator);
    std::vector<double> survival;
    for (std::size_t i = 0; i < mean.size(); ++i) survival.push_back((i % kLongest > 0 ? survival.back() : 1.0) * mean[i]);
    std::sort(survival.rbegin(), survival.rend());
    int best = 0;
    double tokens = kBatch;
    double most = tokens / times[0];
    for (int rows = 1; rows <= kBatch * kLongest; ++rows) {
      tokens += survival[static_cast<std::size_t>(rows) - 1];
      if (tokens / times[static_cast<std::size_t>(rows)] <= most) continue;
      most = tokens / times[static_cast<std::size_t>(rows)];
      best = rows;
    }
    smooth->share(memory, round.chains, round.verified);
    CHECK(round.verified == searched(round, best));
    std::vector<int> verified(kBatch);
    last->share(other, round.chains, verified);
    differ += verified != round.verified ? 1 : 0;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = 0.8 * mean[i] + 0.2 * round.forecasts[i].overlap;
  }
  CHECK(differ > 10);  // the mutant without memory
}

TEST_CASE("adaptive_verification: the estimate learns a logistic of the draft's log-odds from verified tokens only") {
  std::mt19937 generator(20260721);
  std::vector<double> times;
  for (int rows = 0; rows <= kBatch * kLongest; ++rows) times.push_back(1.0 + 0.1 * rows);
  const auto learns = policy_of("estimate", "rows", times, 3.0);
  const auto knows = policy_of("head", "rows", times, 3.0);
  LengthPolicy::Memory memory = learns->start();
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const auto play = [&](bool observe) {
    Round round(generator);
    for (std::size_t i = 0; i < round.forecasts.size(); ++i)
      round.forecasts[i].overlap =
          1.0 / (1.0 + std::exp(-(1.3 * round.forecasts[i].certainty + 0.4 - 0.5 * static_cast<double>(i % kLongest))));
    learns->share(memory, round.chains, round.verified);
    std::vector<int> accepted(kBatch);
    for (std::size_t i = 0; i < kBatch; ++i)
      while (accepted[i] < round.verified[i] &&
             unit(generator) < round.chains[i].forecasts[static_cast<std::size_t>(accepted[i])].overlap)
        ++accepted[i];
    if (observe) learns->observe_shared(memory, round.chains, round.verified, accepted);
    std::vector<int> right(kBatch);
    LengthPolicy::Memory none = knows->start();
    knows->share(none, round.chains, right);
    return round.expected(round.verified) / round.expected(right);
  };
  for (int round = 0; round < 20000; ++round) play(true);
  CHECK(memory.learnt[0] == Approx(1.3).margin(0.35));  // the last hundred rounds' fit
  double share = 0.0;
  for (int round = 0; round < 1000; ++round) share += play(false) / 1000.0;
  CHECK(share > 0.995);
  CHECK(share <= 1.0 + 1e-12);
}

// One Newton step of the logistic by a dense solve, damped as in vLLM. Mutants: a slope that ignores the intercepts, intercepts
// without damping, rejections that are not observed.
TEST_CASE("adaptive_verification: a refit is one damped Newton step of all coefficients together") {
  constexpr std::size_t kSize = kLongest + 1;  // the slope, and an intercept for each position
  std::mt19937 generator(20260722);
  std::vector<double> times(std::size_t{kBatch} * kLongest + 1, 1.0);
  const auto policy = policy_of("estimate", "rows", times, kLongest);
  LengthPolicy::Memory memory = policy->start();
  const auto intercept = [&](std::size_t k) { return memory.learnt[3 + 5 * k]; };
  const double first_slope = memory.learnt[0];
  const std::vector<double> first = {intercept(0), intercept(1), intercept(2), intercept(3)};
  std::vector<std::vector<double>> information(kSize, std::vector<double>(kSize, 0.0));
  std::vector<double> score(kSize, 0.0);
  std::vector<double> seen(kLongest, 0.0);
  std::uniform_int_distribution<int> any(0, kLongest);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (int number = 0; number < 100; ++number) {
    const Round round(generator);
    std::vector<int> verified(kBatch);
    std::vector<int> accepted(kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) {
      verified[i] = any(generator);
      while (accepted[i] < verified[i] &&
             unit(generator) <
                 1.0 / (1.0 + std::exp(-round.chains[i].forecasts[static_cast<std::size_t>(accepted[i])].certainty)))
        ++accepted[i];
      for (int k = 0; k < std::min(verified[i], accepted[i] + 1); ++k) {
        const auto at = static_cast<std::size_t>(k);
        const double x = round.chains[i].forecasts[at].certainty;
        const double p = 1.0 / (1.0 + std::exp(-(first_slope * x + first[at])));
        const double miss = (k < accepted[i] ? 1.0 : 0.0) - p;
        information[0][0] += p * (1.0 - p) * x * x;
        information[0][at + 1] += p * (1.0 - p) * x;
        information[at + 1][0] += p * (1.0 - p) * x;
        information[at + 1][at + 1] += p * (1.0 - p);
        score[0] += miss * x;
        score[at + 1] += miss;
        seen[at] += 1.0;
      }
    }
    policy->observe_shared(memory, round.chains, verified, accepted);
  }
  constexpr double kRidge = 1e-3;
  constexpr double kDamping = 50.0;
  for (std::size_t i = 0; i < kSize; ++i) information[i][i] += kRidge;
  const std::vector<std::vector<double>> whole = information;
  std::vector<double> step = score;
  for (std::size_t i = 0; i < kSize; ++i)  // the matrix is positive definite: no pivots
    for (std::size_t j = 0; j < kSize; ++j) {
      if (j == i) continue;
      const double share = information[j][i] / information[i][i];
      for (std::size_t k = 0; k < kSize; ++k) information[j][k] -= share * information[i][k];
      step[j] -= share * step[i];
    }
  const double all = std::accumulate(seen.begin(), seen.end(), 0.0);
  const double slope = step[0] / information[0][0] * all / (all + kDamping);
  CHECK(memory.learnt[0] - first_slope == Approx(slope).epsilon(1e-9));
  for (std::size_t k = 0; k < kLongest; ++k)
    CHECK(intercept(k) - first[k] ==
          Approx((score[k + 1] - whole[k + 1][0] * slope) / whole[k + 1][k + 1] * seen[k] / (seen[k] + kDamping)).epsilon(1e-9));
}

// Mutant: a sequence without an earlier round counts as lost, and not as certain.
TEST_CASE("adaptive_verification: the budget of a first round counts every token as certain") {
  std::mt19937 generator(20260723);
  std::vector<double> times;
  for (int rows = 0; rows <= kBatch * kLongest; ++rows) times.push_back(1.0 + 0.1 * rows);  // 12 more tokens for 1.2 more
  const auto policy = policy_of("head", "previous", times);
  LengthPolicy::Memory memory = policy->start();
  Round round(generator);
  policy->share(memory, round.chains, round.verified);
  CHECK(round.verified == std::vector<int>(kBatch, kLongest));
}

// Of two sequences the tokens that are easier are verified, whether drawn or chosen. Mutant: a chosen token counts as certain, so
// that each sequence gets one.
TEST_CASE("adaptive_verification: a head knows how likely a token is accepted, chosen ones too") {
  for (const char* const method :
       {"{kind: chain, draft_length: 3}, verifier: token", "{kind: chain, draft_length: 3, selection: argmax}, verifier: token",
        "{kind: dflash, block_size: 4}, verifier: tree_point_mass"}) {
    INFO(method);
    constexpr std::uint64_t kRounds = 200000;
    const std::string draft = std::string(method).find("argmax") != std::string::npos ? "[.6, .4]" : "[1, 0]";
    const tests::ReadyCell ready(
        "{experiment: chosen, rounds: 200000, pair: {vocab: 2, target: {family: uniform}, draft: {family: explicit, "
        "probabilities: " +
        draft +
        "}}, context: {process: regimes, states: [{target: {family: explicit, probabilities: [.95, .05]}}, {target: {family: "
        "explicit, probabilities: [.2, .8]}}], transition: [[.8, .2], [.3, .7]]}, workload: {batch: 2}, cost: {model: ratio, "
        "cost_ratio: .1}, decode: {drafter: " +
        method + ", policy: {kind: adaptive_verification, confidence: head, budget: rows, rows: 1}}}");
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
    // A walk through positions whose tokens are accepted with .95 and .2, calculated without this program.
    CHECK(static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds) == Approx(1.708).margin(0.01));
  }
}

TEST_CASE("adaptive_verification: a batch's round takes a time between those of the passes that its budgets lead to") {
  // 384 rows, beyond which a pass on the H100 takes a tenth longer; one in many rounds verifies 128 rows more.
  const spec::Cell cell =
      tests::experiment_of(
          "{experiment: estimated, pair: {vocab: 8, target: {family: zipf, exponent: 1}, draft: {from: target, "
          "transform: temperature, "
          "value: 1.5}}, decode: {drafter: {kind: chain, draft_length: 7}, verifier: token, policy: {kind: "
          "adaptive_verification}}, "
          "workload: {batch: 128, context_length: 1024}, cost: {model: roofline, hardware: h100-sxm, target: "
          "{preset: llama-3.1-70b, "
          "tensor_parallel: 4}, draft: {preset: eagle3-llama-3.3-70b, tensor_parallel: 4}}}")
          .cells.at(0);
  const auto time = [&](std::uint64_t two, std::uint64_t three) {
    return cell.round_time(0.0, {0, 0, 128 * two, 128 * three, 0, 0, 0, 0}).total();
  };
  const double mean = (386.0 * time(1, 0) + time(0, 1)) / 387.0;
  CHECK(time(386, 1) == Approx(mean).epsilon(0.005));
  CHECK(time(386, 0) == Approx(time(1, 0)).epsilon(1e-12));
  CHECK(time(0, 5) == Approx(time(0, 1)).epsilon(1e-12));
  // The mutant: the pass over the mean number of rows, which is within the next captured size.
  CHECK(cell.shared_round_time(0.0, 2.0 + 1.0 / 387.0).total() > 1.04 * mean);
}

}  // namespace specsim::adaptive_verification_unit_test
