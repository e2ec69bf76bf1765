// Verdicts from counts and distributions that are given by hand.
#include "sim/experiments/judge/agreement.h"
#include "sim/rounds/theory/round_distribution.h"
#include "tests/support/cells.h"
#include "tests/support/round_figures.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace specsim::agreement_test {

TEST_CASE("classes whose shares sum to a little more than 1 are judged like any others") {
  const tests::ReadyCell ready(
      "{experiment: agreement, rounds: 1000, pair: {vocab: 2, target: {family: uniform}, draft: {family: uniform}}, decode: "
      "{drafter: {kind: chain, draft_length: 1}, verifier: token}}");
  judge::DistributionFacts facts;
  facts.classes.class_count = 2;
  facts.classes.strata = 1;
  facts.classes.bin_of_class = {0, 1};
  decode::OutputClasses& classes = facts.classes.classes.emplace_back();
  classes.count = 2;
  classes.target_mass = {0.5, 0.5 + 0x1p-52};  // the sum is 1 + 2^-52
  classes.draft_mass = {0.6, 0.6};             // above the target's: both are counted among the rare classes
  decode::Counts counts = ready.simulator().empty_counts();
  counts.rounds = 1000;
  counts.output = {1000, 1000};
  const judge::Agreement agreement = judge::judge_cell(ready.cell(), facts, judge::Prediction(), counts, 1e-6);
  CHECK(agreement.p_output_distribution > 0.1);
  counts.output = {900, 1100};
  CHECK(judge::judge_cell(ready.cell(), facts, judge::Prediction(), counts, 1e-6).p_output_distribution < 0.01);
}

namespace {

struct Judged {
  judge::Agreement agreement;
  std::optional<judge::Blindness> blindness;
};

Judged judged(const std::string& verifier, const std::string& draft, std::uint64_t rounds, int seed = 1,
              const std::string& policy = "") {
  const tests::ReadyCell ready(fmt::format(
      "{{experiment: power, seed: {}, rounds: {}, pair: {{vocab: 4, target: {{family: explicit, probabilities: [.5, .3, .15, "
      ".05]}}, draft: {}}}, decode: {{drafter: {{kind: chain, draft_length: 3}}, verifier: {}{}}}}}",
      seed, rounds, draft, verifier, policy.empty() ? "" : ", policy: " + policy));
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < rounds; ++i) simulator.run(i, rounds, counts);
  const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), rounds);
  const double level = judge::check_level(judge::kChecksPerCell);
  Judged result{judge::judge_cell(ready.cell(), ready.facts(), prediction, counts, level), std::nullopt};
  result.blindness = judge::blindness(ready.cell(), ready.facts(), prediction, counts, result.agreement, level);
  return result;
}

constexpr const char* kFar = "{family: explicit, probabilities: [.2, .3, .25, .25]}";
constexpr const char* kNear = "{from: target, transform: temperature, value: 0.98}";

}  // namespace

TEST_CASE("a few rounds of a lossy verifier or of a nearly equal pair could not have failed, and as many as are asked for can") {
  for (const auto& [verifier, draft] : {std::pair{"lenience", kFar},
                                        {"judge_decoding", kFar},
                                        {"typical", kFar},
                                        {"speculative_cascade", kFar},
                                        {"top_k_match", kFar},
                                        {"relaxed_top_n", kFar},
                                        {"hsd", kFar},
                                        {"token", kNear}}) {
    INFO(verifier);
    for (const std::uint64_t rounds : {std::uint64_t{1}, std::uint64_t{64}}) {
      const Judged few = judged(verifier, draft, rounds);
      REQUIRE(few.blindness.has_value());
      CHECK_FALSE(few.blindness->smallest <= judge::kPowerError);
      REQUIRE(few.blindness->rounds > static_cast<double>(rounds));
      const Judged enough = judged(verifier, draft, static_cast<std::uint64_t>(few.blindness->rounds));
      CHECK_FALSE(enough.blindness.has_value());
      CHECK(enough.agreement.smallest_error <= judge::kPowerError);
      // The number is not far above what it takes.
      CHECK(judged(verifier, draft, static_cast<std::uint64_t>(0.8 * few.blindness->rounds)).blindness.has_value());
    }
  }
}

TEST_CASE("where every count was pooled into one, the distribution of accepted was not tested") {
  CHECK(std::isnan(judged("token", kFar, 50).agreement.p_accepted_distribution));
  CHECK_FALSE(std::isnan(judged("token", kFar, 5000).agreement.p_accepted_distribution));
  CHECK(judged("hsd", kFar, 50).agreement.p_output_distribution == 1.0);  // nothing but tokens that it never emits was looked for
  CHECK(judged("hsd", kFar, 5000).agreement.p_output_distribution > 1e-6);
  CHECK(std::isnan(judged("lenience", kFar, 5000).agreement.smallest_leak));
}

TEST_CASE("the tokens of a lossy verifier whose blocks a policy ends early are those that theory says") {
  // A block that ends early and stays whole has a bonus token behind it too: counted behind the longest blocks alone, every cell
  // was refuted.
  for (const char* const verifier : {"lenience", "judge_decoding", "typical", "speculative_cascade", "top_k_match"}) {
    for (const char* const policy : {"additive", "{kind: confidence, least: 0.3}", "{kind: entropy, most: 1.3}", "oracle"}) {
      INFO(verifier << ", policy " << policy);
      CHECK(judged(verifier, kFar, 100000, 1, policy).agreement.p_output_distribution > 1e-6);
    }
  }
}

TEST_CASE("an error of the size that a test says it sees is rejected with power .99") {
  // Counts of one draft against the prediction of a mistaken program, whose acceptance is lower or higher at every position alike
  // by what makes just that error. Of 400 seeds 396 are rejected, with a standard deviation of 2; the bound is five of them.
  // About a third of that error is rejected by fewer than half. 3,000 rounds have rare rejections, which are counted; 10,000
  // rounds of the other draft have a normal mean.
  constexpr int kSeeds = 400;
  const double level = judge::check_level(judge::kChecksPerCell);
  for (const auto& [draft, rounds] : {std::pair{kNear, std::uint64_t{3000}}, {kFar, std::uint64_t{10000}}}) {
    INFO(draft);
    int rejected[2] = {0, 0};
    for (int seed = 0; seed < kSeeds; ++seed) {
      const tests::ReadyCell ready(fmt::format(
          "{{experiment: power, seed: {}, rounds: {}, pair: {{vocab: 4, target: {{family: explicit, probabilities: [.5, .3, .15, "
          ".05]}}, draft: {}}}, decode: {{drafter: {{kind: chain, draft_length: 3}}}}}}",
          seed + 1, rounds, draft));
      const decode::Simulator simulator = ready.simulator();
      decode::Counts counts = simulator.empty_counts();
      for (std::uint64_t i = 0; i * simulator.chunk_size() < rounds; ++i) simulator.run(i, rounds, counts);
      const judge::Prediction right = judge::predict_exact(ready.cell(), ready.facts(), rounds);
      for (const bool part : {false, true}) {
        // The alpha at which the test of that theory sees an error as large as the program's.
        double low = right.alpha;
        double high = 1.0;
        judge::Prediction wrong = right;
        for (int i = 0; i < 50; ++i) {
          const double alpha = 0.5 * (low + high);
          wrong.alpha = alpha;
          wrong.accepted_distribution = {theory::constant_alpha(alpha, 3)};
          wrong.tokens_per_round = theory::tokens_per_round(alpha, 3);
          wrong.tokens_per_round_error = std::sqrt(theory::tokens_per_round_variance(alpha, 3) / static_cast<double>(rounds));
          const double seen = judge::MeanTest(ready.cell(), 1, wrong, counts).smallest_error(level);
          const double error = 1.0 - right.tokens_per_round / wrong.tokens_per_round;
          (error < (part ? 0.35 : 1.0) * seen ? low : high) = alpha;
        }
        rejected[part ? 1 : 0] += judge::MeanTest(ready.cell(), 1, wrong, counts).p() < level ? 1 : 0;
      }
    }
    CHECK(rejected[0] >= 386);
    CHECK(rejected[1] < 200);
  }
}

}  // namespace specsim::agreement_test
