// Verdicts for counts and distributions given by hand.
#include "sim/experiments/judge/agreement.h"
#include "sim/experiments/judge/rows.h"
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
#include <vector>

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
  std::optional<judge::Underpowered> underpowered;
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
  result.underpowered = judge::underpowered(ready.cell(), ready.facts(), prediction, counts, result.agreement, level);
  return result;
}

constexpr const char* kFar = "{family: explicit, probabilities: [.2, .3, .25, .25]}";
constexpr const char* kNear = "{from: target, transform: temperature, value: 0.98}";

}  // namespace

TEST_CASE(
    "a few rounds of a lossy verifier or of a nearly equal pair are too few to detect a fault, and the requested number is "
    "enough") {
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
      REQUIRE(few.underpowered.has_value());
      CHECK_FALSE(few.underpowered->smallest <= judge::kPowerError);
      REQUIRE(few.underpowered->rounds > static_cast<double>(rounds));
      const Judged enough = judged(verifier, draft, static_cast<std::uint64_t>(few.underpowered->rounds));
      CHECK_FALSE(enough.underpowered.has_value());
      CHECK(enough.agreement.smallest_error <= judge::kPowerError);
      // The stated number of rounds is not far above the necessary one.
      CHECK(judged(verifier, draft, static_cast<std::uint64_t>(0.8 * few.underpowered->rounds)).underpowered.has_value());
    }
  }
}

TEST_CASE(
    "few rounds of a lossless verifier are reported as too few to detect a leak of one in a hundred, with the number needed") {
  // The detectable leak falls with the root of the rounds: 64 rounds detect none below a tenth. Mutant: the two values are
  // exchanged.
  const Judged few = judged("token", kFar, 64);
  REQUIRE(few.underpowered.has_value());
  CHECK(few.underpowered->allowed == 0.01);
  CHECK(few.underpowered->smallest > 0.1);
  CHECK(few.underpowered->rounds > 6400.0);
  CHECK_FALSE(judged("token", kFar, static_cast<std::uint64_t>(few.underpowered->rounds)).underpowered.has_value());
}

TEST_CASE("if every count was pooled into one, the distribution of accepted was not tested") {
  CHECK(std::isnan(judged("token", kFar, 50).agreement.p_accepted_distribution));
  CHECK_FALSE(std::isnan(judged("token", kFar, 5000).agreement.p_accepted_distribution));
  CHECK(judged("hsd", kFar, 50).agreement.p_output_distribution == 1.0);  // only tokens that it never emits were tested
  CHECK(judged("hsd", kFar, 5000).agreement.p_output_distribution > 1e-6);
  CHECK(std::isnan(judged("lenience", kFar, 5000).agreement.smallest_leak));
}

TEST_CASE("the tokens of a lossy verifier whose blocks a policy ends early are those that theory predicts") {
  // A block that ends early and is fully accepted has a bonus token after it too: when only the longest blocks counted, every
  // cell was refuted.
  for (const char* const verifier : {"lenience", "judge_decoding", "typical", "speculative_cascade", "top_k_match"}) {
    for (const char* const policy : {"additive", "{kind: confidence, least: 0.3}", "{kind: entropy, most: 1.3}", "oracle"}) {
      INFO(verifier << ", policy " << policy);
      CHECK(judged(verifier, kFar, 100000, 1, policy).agreement.p_output_distribution > 1e-6);
    }
  }
}

TEST_CASE("an error of the size that a test claims to detect is rejected with power .99", "[stat]") {
  // Counts of one draft, compared with the prediction of a wrong program whose acceptance differs at every position by the amount
  // of the stated error. Of 400 seeds 396 are rejected, with a standard deviation of 2; the bound is five of them. About a third
  // of that error is rejected by fewer than half. 3,000 rounds have rare rejections, which are counted; 10,000 rounds of the
  // other draft have a normal mean.
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
        // The alpha at which the theory's test detects an error as large as the program's.
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

TEST_CASE("classes of few expected tokens join the smallest of the others") {
  // 50 expected tokens are too few for a class. They join the 450: 520 tokens for 500, and 480 for 500, and 2 (520 ln 1.04 + 480
  // ln .96) = 1.600427. Mutants: they are left out; they make a class of their own.
  judge::GTest test;
  test.add({480, 470, 50}, {500, 450, 50});
  CHECK(test.degrees == 1);
  CHECK(test.g == Approx(1.600426939967619).epsilon(1e-12));
}

namespace {

const char* const kPlainCell =
    "{experiment: by_hand, rounds: 1000, pair: {vocab: 4, target: {family: uniform}, draft: {family: uniform}}, context: "
    "{process: "
    "fixed, sequence_rounds: 10}, decode: {drafter: {kind: chain, draft_length: 3}, verifier: token}, cost: {model: ratio, "
    "cost_ratio: 0.1}}";

// Classes with these shares, in these ratio bins, and the given number of tokens.
judge::Agreement output_judged(const std::vector<double>& target, const std::vector<double>& draft,
                               const std::vector<std::uint8_t>& bins, const std::vector<std::uint64_t>& output) {
  const tests::ReadyCell ready(kPlainCell);
  judge::DistributionFacts facts;
  facts.classes.class_count = static_cast<int>(target.size());
  facts.classes.strata = 1;
  facts.classes.bin_of_class = bins;
  decode::OutputClasses& classes = facts.classes.classes.emplace_back();
  classes.count = facts.classes.class_count;
  classes.target_mass = target;
  classes.draft_mass = draft;
  decode::Counts counts = ready.simulator().empty_counts();
  counts.output = output;
  return judge::judge_cell(ready.cell(), facts, judge::Prediction(), counts, 1e-6);
}

}  // namespace

TEST_CASE("the output's p-value is that of the smallest of the tests that could fail") {
  // 12,100 and 7,900 tokens for 12,000 and 8,000. G = 2.086269, p = .1486286 with one degree of freedom; the score's z is
  // 41.667 / sqrt(833.33) = 1.443376, p = .1489147. Two tests: 1 - (1 - .1486286)^2. Mutant: neighbours, which all lie in one
  // bin, count as a third.
  CHECK(output_judged({0.6, 0.4}, {0.5, 0.5}, {0, 0}, {12100, 7900}).p_output_distribution ==
        Approx(0.27516681198124).epsilon(1e-9));
  // More classes than bins, with one class alone in its bin: the bins are a second test, with one degree of freedom. Mutant: they
  // need two.
  constexpr std::size_t kClasses = decode::kPairBins + 1;
  const std::vector<double> even(kClasses, 1.0 / static_cast<double>(kClasses));
  std::vector<std::uint8_t> bins(kClasses, 0);
  bins.back() = 1;
  std::vector<std::uint64_t> output(kClasses, 6000);
  output.front() -= 200;
  output.back() += 200;
  const double rest = 6000.0 * static_cast<double>(kClasses - 1);
  const double g = 2.0 * (6200.0 * std::log(6200.0 / 6000.0) + (rest - 200.0) * std::log((rest - 200.0) / rest));
  const double p = std::erfc(std::sqrt(g / 2.0));
  CHECK(output_judged(even, even, bins, output).p_output_distribution == Approx(1.0 - (1.0 - p) * (1.0 - p)).epsilon(1e-9));
}

TEST_CASE("a token that the target never emits shows a leak of few tokens") {
  // A quarter of the draft lies where the target has probability zero. None of 20,000 tokens is there; with probability .99 one
  // of a leak of ln(100) 5,000 would be. Mutant: a leak below zero.
  CHECK(output_judged({0.6, 0.4, 0.0}, {0.5, 0.25, 0.25}, {0, 0, 1}, {12000, 8000, 0}).smallest_leak ==
        Approx(std::log(100.0) / 5000.0).epsilon(1e-12));
}

TEST_CASE("a mean of rare rejections is judged by bounds that hold for any distribution") {
  // 1,200 tokens of 1,000 rounds, for 1,020 +- 60: three standard deviations. Chebyshev: 1 / 9. Bernstein, if sequences of 10
  // rounds with 3 drafts are off by 30 at most: 2 exp(-4.5 / (1 + 30 3 / (3 60))) = 2 exp(-3). Mutant: no limit for a sequence.
  const tests::ReadyCell ready(kPlainCell);
  decode::Counts counts = ready.simulator().empty_counts();
  counts.rounds = 1000;
  counts.emitted = 1200;
  counts.reached = {1000, 180, 20};
  counts.accepted = {180, 20, 0};
  judge::Prediction prediction;
  prediction.known = true;
  prediction.alpha = 0.02;
  prediction.tokens_per_round = 1.02;
  prediction.tokens_per_round_error = 0.06;
  CHECK(judge::MeanTest(ready.cell(), 1, prediction, counts).p() == Approx(2.0 * std::exp(-3.0)).epsilon(1e-9));
}

TEST_CASE("errors of a row are those of its groups") {
  // Groups of 10, 10 and 20 rounds with 20, 30 and 40 tokens: 2.25 tokens per round. They are off by -2.5, 7.5 and -5 tokens,
  // whose squares add up to 87.5: sqrt(87.5 3 / 2) / 40 = .286411, with two degrees of freedom. If all rounds take the same time,
  // the speedup has the same relative error. Mutants: the groups are not weighted by their rounds; error and freedom change
  // places.
  const tests::ReadyCell ready(kPlainCell);
  judge::Row row;
  row.cell = &ready.cell();
  row.counts = ready.simulator().empty_counts();
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> groups = {{10, 20}, {10, 30}, {20, 40}};
  for (std::size_t i = 0; i < groups.size(); ++i) row.counts.add_group({i, 1, groups[i].first, 0, 0, groups[i].second}, true);
  const report::Estimate tokens = row.tokens_per_round_estimate();
  CHECK(tokens.value == 2.25);
  CHECK(tokens.error == Approx(0.28641098).epsilon(1e-6));
  CHECK(tokens.freedom == 2.0);
  const report::Estimate speedup = row.speedup_estimate();
  CHECK(speedup.error / speedup.value == Approx(tokens.error / tokens.value).epsilon(1e-9));
  row.counts.add_group({3, 1, 10, 0, 0, 20}, true);
  CHECK(row.speedup_estimate().error > 0.0);
}

TEST_CASE("a table names an axis by as many words as tell it from the others, and has a value in every column") {
  const spec::Experiment experiment = tests::experiment_of(
      "{experiment: axes, rounds: 640, pair: {vocab: 4, target: {family: uniform}, draft: {from: target, transform: overlap, "
      "value: "
      ".7, shape: disjoint_tail}}, decode: {drafter: {kind: chain, draft_length: 1}, verifier: token}, sweep: {pair.draft.value: "
      "[.6, .7], "
      "decode.drafter.draft_length: [1, 2]}}");
  REQUIRE(experiment.cells.size() == 4);
  std::vector<judge::Row> rows;
  for (const spec::Cell& cell : experiment.cells) {
    judge::Row& row = rows.emplace_back();
    row.cell = &cell;
    const tests::ReadyCell ready(cell);
    const decode::Simulator simulator = ready.simulator();
    row.counts = simulator.empty_counts();
    simulator.run(0, 640, row.counts);
    row.judged_by = judge::predict_exact(ready.cell(), ready.facts(), 640);
    row.agreement = judge::judge_cell(ready.cell(), ready.facts(), row.judged_by, row.counts, 1e-6);
    row.agreement.z_tokens_per_round = 1.25;
  }
  const std::string text = judge::table(rows, true, {});
  CAPTURE(text);
  const auto holds = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(holds(" value "));
  CHECK(holds(" draft_length "));
  CHECK_FALSE(holds("draft.value"));  // mutant: whole paths
  CHECK(holds("+1.25"));              // mutant: z is left out, and the next value appears in its column
}

TEST_CASE("theory steps down to a shorter tier where the policy does by default") {
  // SGLang's adaptive_spec_params.py: a quarter of a token below the tier. Mutant: a quarter above.
  const auto tokens = [](const std::string& more) {
    const tests::ReadyCell ready(fmt::format(
        "{{experiment: tiers, rounds: 1000, pair: {{vocab: 4, target: {{family: uniform}}, draft: {{from: target, transform: "
        "overlap, value: .6, shape: disjoint_tail}}}}, context: {{process: fixed, sequence_rounds: 8}}, decode: {{drafter: "
        "{{kind: "
        "chain, draft_length: 3}}, verifier: token, policy: {{kind: ema_tiers, tiers: [1, 3], warm_up: 2, every: 1{}}}}}, "
        "workload: {{batch: 1}}}}",
        more));
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), 1000);
    CAPTURE(prediction.missing);
    REQUIRE(prediction.known);
    return prediction.tokens_per_round;
  };
  CHECK(tokens("") == Approx(tokens(", down: -0.25")).epsilon(1e-12));
  CHECK(std::abs(tokens("") / tokens(", down: 0.25") - 1.0) > 1e-4);
}

TEST_CASE("a calculation that is too large is reported with its size") {
  const auto missing = [](int vocab, const std::string& decode) {
    const tests::ReadyCell ready(
        fmt::format("{{experiment: many, rounds: 64, pair: {{vocab: {}, target: {{family: dirichlet, concentration: 1}}, draft: "
                    "{{from: target, "
                    "transform: temperature, value: 2}}}}, context: {{process: iid, pool: 3}}, decode: {}}}",
                    vocab, decode));
    return judge::predict_exact(ready.cell(), ready.facts(), 64).missing;
  };
  // Drawing three siblings in one of three contexts takes 300 x 300 x 299 x 298 tokens: 2.4e10, of which 2^24 are allowed.
  CHECK(missing(300,
                "{drafter: {kind: tree_static, branching: [3, 1], siblings: without_replacement}, verifier: "
                "without_replacement}") == "vocabulary 300, 3 siblings without replacement: too many draws");
  // 20^5 ends of a path, for each of three contexts: 9.6 million, of which 2^22 are allowed.
  CHECK(missing(20, "{drafter: {kind: tree_static, branching: [3, 1, 1, 1, 1]}, verifier: greedy_multi_path}") ==
        "vocabulary 20, paths of 5: too many paths");
  CHECK(missing(9, "{drafter: {kind: dspark, block_size: 16}, verifier: block}") ==
        "vocabulary 9, draft_length 16, 3 contexts in all pairs: too many");
}

}  // namespace specsim::agreement_test
