// What a batch verifies out of one budget of rows: the budget and who has it, against a search of all budgets, and the fit of
// acceptance against a logistic that is known.
#include "sim/draft/length_policy.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
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
                                        const std::vector<double>& row_times, double rows = 1.0) {
  Diagnostics diagnostics;
  const draft::PolicyEntry* entry = draft::policies().find("adaptive_verification");
  REQUIRE(entry != nullptr);
  const config::Value section = config::parse_text(
      "{confidence: " + confidence + ", budget: " + budget + ", rows: " + std::to_string(rows) + "}", "test", diagnostics);
  const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, "policy", diagnostics);
  auto policy = entry->make(arguments, {kLongest, {}, kBatch, row_times}, diagnostics);
  diagnostics.throw_if_any();
  return policy;
}

struct Round {
  std::vector<LengthPolicy::Outlook> outlooks{std::size_t{kBatch} * kLongest};
  std::vector<LengthPolicy::Chain> chains;
  std::vector<int> verified = std::vector<int>(kBatch);
  explicit Round(std::mt19937& generator) {
    std::uniform_real_distribution<double> any(0.2, 0.95);
    for (LengthPolicy::Outlook& own : outlooks) own = {any(generator), 4.0 * any(generator) - 1.0};
    for (std::size_t i = 0; i < kBatch; ++i) chains.push_back({i, std::span(outlooks).subspan(i * kLongest, kLongest)});
  }
  [[nodiscard]] double survival(std::size_t chain, int tokens) const {
    double product = 1.0;
    for (int k = 0; k < tokens; ++k) product *= chains[chain].outlooks[static_cast<std::size_t>(k)].overlap;
    return product;
  }
  [[nodiscard]] double expected(const std::vector<int>& lengths) const {
    double tokens = kBatch;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      for (int k = 1; k <= lengths[i]; ++k) tokens += survival(i, k);
    return tokens;
  }
};

// The lengths of most expected tokens with so many rows, of all that there are.
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

TEST_CASE("adaptive_verification: a budget goes to the tokens that are likeliest to survive, whoever drafted them") {
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

TEST_CASE("adaptive_verification: vLLM's budget goes by the round before, DSpark's by this one as far as it rises") {
  std::mt19937 generator(20260720);
  std::vector<double> times;  // a step at the fifth row, and dearer rows behind it
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

TEST_CASE("adaptive_verification: the estimate learns a logistic of the draft's log-odds from what was verified alone") {
  std::mt19937 generator(20260721);
  std::vector<double> times;
  for (int rows = 0; rows <= kBatch * kLongest; ++rows) times.push_back(1.0 + 0.1 * rows);
  const auto learns = policy_of("estimate", "rows", times, 3.0);
  const auto knows = policy_of("head", "rows", times, 3.0);
  LengthPolicy::Memory memory = learns->start();
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const auto play = [&](bool observe) {
    Round round(generator);
    for (std::size_t i = 0; i < round.outlooks.size(); ++i)
      round.outlooks[i].overlap =
          1.0 / (1.0 + std::exp(-(1.3 * round.outlooks[i].certainty + 0.4 - 0.5 * static_cast<double>(i % kLongest))));
    learns->share(memory, round.chains, round.verified);
    std::vector<int> accepted(kBatch);
    for (std::size_t i = 0; i < kBatch; ++i)
      while (accepted[i] < round.verified[i] &&
             unit(generator) < round.chains[i].outlooks[static_cast<std::size_t>(accepted[i])].overlap)
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

TEST_CASE("adaptive_verification: a batch's round is priced between the passes that its budgets lead to") {
  // 384 rows, beyond which a pass on the H100 takes a tenth more; one round of many verifies 128 rows more.
  const spec::Cell cell = tests::experiment_of(
                              "{experiment: priced, pair: {vocab: 8, target: {family: zipf, exponent: 1}, draft: {from: target, "
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
  // The mutant: the pass over the mean number of rows, which the next captured one holds.
  CHECK(cell.shared_round_time(0.0, 2.0 + 1.0 / 387.0).total() > 1.04 * mean);
}

}  // namespace specsim::adaptive_verification_unit_test
