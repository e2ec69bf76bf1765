// Acceptance curves and plans compared with closed forms of sim/rounds/theory, which share no code with them.
#include "sim/answers/plan/planner.h"

#include "sim/answers/plan/gain.h"
#include "sim/answers/plan/latency_noise.h"
#include "sim/answers/plan/stated_acceptance.h"
#include "sim/foundation/base/index.h"
#include "sim/hardware/latency/round_time.h"
#include "sim/rounds/theory/requests.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/speedup.h"
#include "tests/support/cells.h"
#include "tests/support/coverage.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>

namespace specsim::plan_test {

using plan::AcceptanceCurve;
using tests::TemporaryFile;

namespace {

std::unique_ptr<cost::CostModel> cost_model(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value value = config::parse_text(yaml, "test", diagnostics);
  const std::string name = value.find("model")->text;
  const cost::CostEntry* entry = cost::cost_models().find(name);
  REQUIRE(entry != nullptr);
  auto model = entry->make(config::read_arguments(value, entry->info.parameters, {"model"}, name, diagnostics), diagnostics);
  diagnostics.throw_if_any();
  REQUIRE(model != nullptr);
  return model;
}

}  // namespace

TEST_CASE("a constant acceptance curve is the closed form") {
  for (const double alpha : {0.0, 0.3, 0.75, 1.0}) {
    const AcceptanceCurve curve = plan::constant_acceptance(alpha, 12);
    REQUIRE(curve.longest() == 12);
    for (int k = 0; k <= 12; ++k) {
      CHECK(curve.tokens_per_round[static_cast<std::size_t>(k)] == Approx(theory::tokens_per_round(alpha, k)).epsilon(1e-13));
      CHECK(curve.full_rate[static_cast<std::size_t>(k)] == Approx(std::pow(alpha, k)).epsilon(1e-13));
    }
    CHECK(curve.equivalent_alpha(5) == Approx(alpha).margin(1e-12));
  }
}

TEST_CASE("rates of all rounds, conditional rates and lengths are distinguished") {
  // A vLLM log: .707, .453, .307, .253 of all rounds, mean acceptance length 2.72.
  const AcceptanceCurve all = plan::unconditional_acceptance({0.707, 0.453, 0.307, 0.253}, 6);
  CHECK(all.tokens_per_round[4] == Approx(1.0 + 0.707 + 0.453 + 0.307 + 0.253).epsilon(1e-12));
  CHECK(all.tokens_per_round[5] == Approx(all.tokens_per_round[4] + 0.253 * 0.253 / 0.307).epsilon(1e-12));
  CHECK(all.measured == 4);
  const AcceptanceCurve conditional = plan::conditional_acceptance({0.707, 0.453 / 0.707, 0.307 / 0.453, 0.253 / 0.307}, 6);
  for (std::size_t k = 0; k <= 6; ++k) CHECK(conditional.tokens_per_round[k] == Approx(all.tokens_per_round[k]).epsilon(1e-12));
  // As conditional rates they would give far fewer tokens.
  CHECK(plan::conditional_acceptance({0.707, 0.453, 0.307, 0.253}, 4).tokens_per_round[4] < 2.2);
  CHECK_THROWS_WITH(plan::unconditional_acceptance({0.5, 0.6}, 4), Catch::Contains("0.6 after 0.5"));

  const AcceptanceCurve length = plan::length_acceptance(2.72, 4, 8);
  CHECK(length.tokens_per_round[4] == Approx(2.72).epsilon(1e-12));
  CHECK_THROWS_WITH(plan::length_acceptance(5.5, 4, 8), Catch::Contains("1 to 5"));
}

TEST_CASE("no draft is longer than the heads that guess it") {
  const std::string heads = "{model: roofline, hardware: a100-80gb-sxm, target: vicuna-7b, draft: medusa-heads-7b}";
  CHECK(cost_model(heads)->most_drafts() == 5);
  const auto chain = cost_model("{model: roofline, hardware: a100-80gb-sxm, target: vicuna-7b, draft: eagle-head-7b}");
  CHECK(chain->most_drafts() > 1000);
  const std::string block = "{model: roofline, hardware: h100-sxm, target: qwen3-8b, draft: ";
  CHECK(cost_model(block + "dspark-qwen3-8b}")->most_drafts() == 7);
  CHECK(cost_model(block + "dflash-qwen3-8b}")->most_drafts() == 15);
  CHECK(cost_model(block + "{preset: dspark-qwen3-8b, longest_draft: 5}}")->most_drafts() == 5);
  AcceptanceCurve curve = plan::conditional_acceptance({0.6, 0.5}, 8);
  curve.end_at(5);
  CHECK(curve.longest() == 5);
  CHECK(curve.tokens_per_round[5] == Approx(plan::conditional_acceptance({0.6, 0.5}, 5).tokens_per_round[5]).epsilon(1e-15));
  CHECK(plan::make_plan(*cost_model(heads), {1.0, 512.0}, curve).points.size() == 6);
}

TEST_CASE("the error of extrapolating with the last rate, on recorded drafts") {
  const plan::LastRateError three = plan::last_rate_error(3);
  CHECK(three.tables >= 10);
  // Llama-3.3 70B's draft on code, whose rates rise from .866 to .945: 5.34 tokens of 5.74.
  const AcceptanceCurve rising = plan::table_acceptance("llama-3.3-70b-1b-code", {}, 8);
  const double reached = rising.full_rate[3];
  const double rate = rising.full_rate[3] / rising.full_rate[2];
  double held = rising.tokens_per_round[3];
  for (int k = 1; k <= 5; ++k) held += reached * std::pow(rate, k);
  CHECK(three.least <= held / rising.tokens_per_round[8] - 1.0 + 1e-12);
  CHECK(three.most >= three.least);
  CHECK(plan::last_rate_error(64).tables == 0);
}

TEST_CASE("an acceptance trace is walked round by round") {
  // Draft length 2: positions 0 (accepts 2 of 3: emits 3), 3 (0: 1), 4 (1: 2); at 6 the end could cut a round, and anywhere in
  // the second request.
  const TemporaryFile file(
      "{\"request\": \"a\", \"draft_length\": 3, \"accepted\": [3, 0, 0, 0, 1, 0, 2]}\n"
      "\n"
      "{\"request\": 7, \"draft_length\": 4, \"accepted\": [0, 0]}\n");
  const AcceptanceCurve curve = plan::trace_acceptance(file.path(), 16);
  CHECK(curve.longest() == 3);  // the prediction at the shortest draft length
  CHECK(curve.tokens_per_round[0] == 1.0);
  CHECK(curve.tokens_per_round[2] == Approx((3.0 + 1.0 + 2.0) / 3.0));
  CHECK(curve.full_rate[2] == Approx(1.0 / 3.0));
  CHECK(curve.tokens_per_round[1] == Approx((2 + 1 + 1 + 2 + 1.0) / 5.0));  // 0, 2, 3, 4, and 0 of the second
}

TEST_CASE("an overlap trace gives the exact expectation, short requests too") {
  for (const int tokens : {5, 6, 40}) {
    std::string overlaps;
    for (int i = 0; i < tokens; ++i) overlaps += std::string(i > 0 ? ", " : "") + "0.7";
    const TemporaryFile file("{\"request\": 1, \"overlap\": [" + overlaps + "]}\r\n");
    const AcceptanceCurve curve = plan::trace_acceptance(file.path(), 8);
    CHECK(curve.longest() == std::min(8, tokens - 1));
    for (int k = 1; k <= curve.longest(); ++k)
      CHECK(curve.tokens_per_round[static_cast<std::size_t>(k)] == Approx(theory::tokens_per_round(0.7, k)).epsilon(1e-12));
  }
  // Different rates, by hand. Draft length 1: rounds start at 0, at 1 (.1) and at 2 (.9 + .1 * .8 = .98); 2: at 0 and at 1.
  // Mutants: the rate of the round's start for the whole round, or that of the position before.
  const TemporaryFile differ("{\"request\": 1, \"overlap\": [0.9, 0.2, 0.6, 0.5]}\n");
  const AcceptanceCurve curve = plan::trace_acceptance(differ.path(), 8);
  CHECK(curve.longest() == 3);
  CHECK(curve.tokens_per_round[1] == Approx((1.9 + 0.1 * 1.2 + 0.98 * 1.6) / 2.08).epsilon(1e-12));
  CHECK(curve.tokens_per_round[2] == Approx((1.0 + 0.9 + 0.18 + 0.1 * (1.0 + 0.2 + 0.12)) / 1.1).epsilon(1e-12));
  CHECK(curve.tokens_per_round[3] == Approx(1.0 + 0.9 + 0.18 + 0.108).epsilon(1e-12));
  const TemporaryFile file("{\"request\": 1, \"overlap\": [0.7]}\n");
  CHECK_THROWS_WITH(plan::trace_acceptance(file.path(), 4), Catch::Contains("no request has more than one position"));
}

TEST_CASE("recorded rounds are exact at their draft length, and shorter ones are the same rounds cut") {
  const TemporaryFile file(
      "{\"draft_length\": 3, \"rounds\": [3, 0, 1]}\n"
      "{\"draft_length\": 3, \"rounds\": [2, 1], \"drafted\": [3, 1]}\n");
  const AcceptanceCurve curve = plan::trace_acceptance(file.path(), 16);
  CHECK(curve.longest() == 3);
  CHECK(curve.measured == 3);
  CHECK(curve.tokens_per_round[3] == Approx((4.0 + 1.0 + 2.0 + 3.0) / 4.0));  // the last round drafted only one token
  CHECK(curve.full_rate[3] == Approx(0.25));
  CHECK(curve.tokens_per_round[1] == Approx((2.0 + 1.0 + 2.0 + 2.0 + 2.0) / 5.0));
  CHECK_THAT(curve.source, Catch::Contains("valid for draft length 3; shorter ones use the same rounds, cut"));
}

TEST_CASE("outcomes that are written as overlaps cause a warning that they lost their depth") {
  // Every round accepts two of its drafts, wherever it starts: overlaps keep only the share of accepted tokens.
  const TemporaryFile prefixes("{\"draft_length\": 5, \"accepted\": [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]}\n");
  CHECK(plan::trace_acceptance(prefixes.path(), 5).tokens_per_round[5] == Approx(3.0));
  const TemporaryFile outcomes("{\"overlap\": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}\n");
  const AcceptanceCurve lost = plan::trace_acceptance(outcomes.path(), 5);
  CHECK(lost.tokens_per_round[5] == Approx(6.0));
  CHECK_THAT(lost.source, Catch::Contains("outcomes without their depth"));
  const TemporaryFile probabilities("{\"overlap\": [1, 0.5, 1, 1, 1, 0, 1]}\n");
  CHECK_THAT(plan::trace_acceptance(probabilities.path(), 5).source, !Catch::Contains("depth"));
}

TEST_CASE("a wrong line of a trace is named") {
  const auto message = [](const std::string& text) -> std::string {
    const TemporaryFile file(text);
    try {
      plan::trace_acceptance(file.path(), 4);
    } catch (const BadInput& bad) {
      return std::string(bad.what()).substr(file.path().size());
    }
    return "";
  };
  const std::string good = "{\"request\": 1, \"draft_length\": 3, \"accepted\": [1]}\n";
  CHECK_THAT(message(good + "{\"request\": 1, \"draft_length\": 3, \"accepted\": [1, 4]}\n"),
             Catch::StartsWith(":2: accepted holds 4"));
  CHECK_THAT(message(good + "{\"request\": 1, \"draft_length\": 3, \"accepted\": [0.5]}\n"),
             Catch::StartsWith(":2: accepted holds 0.5"));
  CHECK_THAT(message(good + "{\"request\": 1, \"overlap\": [0.5]}\n"),
             Catch::StartsWith(":2: acceptance probabilities by position, without depth after accepted prefixes by position"));
  CHECK_THAT(message(good + "[1, 2]\n"), Catch::StartsWith(":2: this is not a JSON object"));
  CHECK_THAT(message(good + "{\"request\": 1, \"accepted\": [1]}\n"), Catch::StartsWith(":2: draft_length is missing"));
  CHECK_THAT(message(good + "{\"request\": 1}\n"),
             Catch::StartsWith(":2: no record of acceptance, allowed: {\"draft_length\", \"accepted\""));
  CHECK_THAT(
      message("{\"target\": [[1, 0]], \"draft\": [[0.5, 0.5]]}\n"),
      Catch::StartsWith(
          ":1: distributions by position, which specsim fit and context process trace of specsim run take, allowed here:"));
  CHECK_THAT(message(good + "{\"request\": 1, \"draft_length\": 0, \"accepted\": [0]}\n"),
             Catch::StartsWith(":2: draft_length is 0"));
  CHECK_THAT(message("{\"request\": 1, \"overlap\": []}\n"), Catch::StartsWith(":1: no position"));
  CHECK_THAT(message("\n"), Catch::StartsWith(": no request"));
}

TEST_CASE("with the ratio model a plan is theory's best draft length and break-even alpha") {
  for (const double alpha : {0.2, 0.5, 0.7, 0.9}) {
    for (const double ratio : {0.02, 0.05, 0.2, 0.6}) {
      const auto cost =
          cost_model("{model: ratio, cost_ratio: " + std::to_string(ratio) + ", verify_inflation: 1.1, overhead: 0.02}");
      const theory::RatioCost closed{ratio, 1.1, 0.02};
      const plan::Plan plan = plan::make_plan(*cost, {}, plan::constant_acceptance(alpha, 64));
      const theory::BestDraftLength best = theory::best_draft_length(alpha, closed, 64);
      CHECK(plan.best == best.draft_length);
      CHECK(plan.best_point().speedup == Approx(best.speedup).epsilon(1e-12));
      const auto even = plan::break_even(*cost, {}, 64);
      const auto any = theory::break_even_alpha_any(closed, 64);
      REQUIRE(even.has_value() == any.has_value());
      if (even) CHECK(even->alpha == Approx(any->alpha).epsilon(1e-9));
      const auto at_four = plan::break_even(*cost, {}, 64, 4);
      const auto closed_at_four = theory::break_even_alpha(4, closed);
      REQUIRE(at_four.has_value() == closed_at_four.has_value());
      if (at_four) CHECK(at_four->alpha == Approx(*closed_at_four).margin(1e-9));
    }
  }
  // Free drafts pay from 0 on, also at a single draft length, which is then the only one searched.
  const auto free = plan::break_even(*cost_model("{model: ratio, cost_ratio: 0}"), {}, 64);
  REQUIRE(free.has_value());
  CHECK(free->alpha == 0.0);
  // 1 + alpha tokens in 1 + .1 + .3: alpha = .4. Longer drafts break even at lower alpha. Mutant: they are searched too.
  const auto one = plan::break_even(*cost_model("{model: ratio, cost_ratio: 0.1, overhead: 0.3}"), {}, 64, 1);
  REQUIRE(one.has_value());
  CHECK(one->alpha == Approx(0.4));
}

// A break-even alpha that is put back into the table must give a speedup of 1. The mutant estimates the first draft pass without
// the token to catch up with, as if no round accepted every draft: at large batches of short contexts it is off by a third.
TEST_CASE("the break-even alpha, put back into the table, breaks even") {
  double furthest_mutant = 0.0;
  for (const std::string pair : {"target: llama-3.1-8b, draft: llama-3.2-1b", "target: llama-3.1-8b, draft: eagle-head-8b",
                                 "target: llama-3.2-1b, draft: llama-68m", "target: llama-2-7b, draft: llama-68m",
                                 "target: qwen2.5-14b, draft: qwen2.5-0.5b", "target: mixtral-8x7b, draft: eagle-head-7b"}) {
    for (const std::string hardware : {"h100-sxm", "a100-80gb-sxm"}) {
      const auto cost = cost_model("{model: roofline, hardware: " + hardware + ", " + pair + "}");
      for (const double batch : {1.0, 8.0, 64.0, 128.0, 200.0, 512.0}) {
        const cost::Workload workload{batch, 177.0};
        for (const int k : {1, 3, 6}) {
          const auto even = plan::break_even(*cost, workload, k, k);
          if (!even) continue;
          INFO(pair << " on " << hardware << ", batch " << batch << ", draft length " << k << ", alpha " << even->alpha);
          const auto speedup = [&](double alpha) {
            const plan::Plan plan = plan::make_plan(*cost, workload, plan::constant_acceptance(alpha, k));
            return plan.points.back().speedup;
          };
          CHECK(std::abs(speedup(even->alpha) - 1.0) < 1e-3);
          const cost::RoundTime round = cost::round_time(*cost, workload, k, 0.0);
          const double without = theory::tokens_per_round(even->alpha, k) * round.plain.total() / round.total();
          furthest_mutant = std::max(furthest_mutant, std::abs(without - 1.0));
        }
      }
    }
  }
  CHECK(furthest_mutant > 0.02);
}

TEST_CASE("sensitivity to alpha is the slope of the table") {
  const auto cost = cost_model("{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: eagle-head-8b}");
  const cost::Workload workload{64.0, 2048.0};
  const auto at = [&](double alpha) {
    return plan::make_plan(*cost, workload, plan::constant_acceptance(alpha, 3)).points.back().speedup;
  };
  CHECK(plan::speedup_per_alpha(*cost, workload, 3, 0.7) == Approx((at(0.705) - at(0.695)) / 0.01).epsilon(1e-9));
}

TEST_CASE("why speculation loses") {
  const auto regime = [](const std::string& yaml, double alpha) {
    const plan::MapCell cell = plan::make_map(*cost_model(yaml), {1.0}, {0.0}, {alpha}, 16, 1).at(0);
    CHECK((cell.best == 0) == (cell.speedup == 1.0));
    CHECK((cell.regime == plan::Regime::pays) == (cell.best > 0));
    return std::string(to_text(cell.regime));
  };
  CHECK(regime("{model: ratio, cost_ratio: 0.1}", 0.5) == "pays");
  CHECK(regime("{model: ratio, cost_ratio: 0.3}", 0.2) == "low_acceptance");
  CHECK(regime("{model: ratio, cost_ratio: 0.8}", 0.5) == "expensive_draft");
  CHECK(regime("{model: ratio, cost_ratio: 0.1, verify_inflation: 2.5}", 0.5) == "compute_bound");
}

TEST_CASE("a margin's interval, by hand") {
  // Speedups at cost ratio .1 are tokens / (1 + .1 k), for five parts that differ at draft lengths 1 and 2.
  AcceptanceCurve curve = plan::constant_acceptance(0.5, 2);
  curve.sampled = true;
  curve.tokens_per_round = {1.0, 1.5, 1.8};
  curve.freedom = 4.0;
  curve.parts = {{1.0, 1.5, 1.70}, {1.0, 1.4, 1.80}, {1.0, 1.6, 1.90}, {1.0, 1.5, 1.75}, {1.0, 1.5, 1.85}};
  const plan::Plan plan = plan::make_plan(*cost_model("{model: ratio, cost_ratio: 0.1}"), {}, curve);
  REQUIRE(plan.best == 2);
  REQUIRE(plan.margins.size() == 2);
  // Relative to draft length 1: 1.8 / 1.2 - 1.5 / 1.1; the parts' own differences below.
  const std::vector<double> differences = {1.70 / 1.2 - 1.5 / 1.1, 1.80 / 1.2 - 1.4 / 1.1, 1.90 / 1.2 - 1.6 / 1.1,
                                           1.75 / 1.2 - 1.5 / 1.1, 1.85 / 1.2 - 1.5 / 1.1};
  double mean = 0.0;
  for (const double d : differences) mean += d / 5.0;
  double squares = 0.0;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  constexpr double kT = 2.7764451;  // .975 of Student's t with 4 degrees of freedom
  CHECK(plan.margins[1].margin == Approx(1.8 / 1.2 - 1.5 / 1.1).epsilon(1e-12));
  CHECK(plan.margins[1].half_width == Approx(kT * std::sqrt(squares / 4.0 / 5.0)).epsilon(1e-6));
  // At cost ratio .3 draft length 1 is best, and 2 is the other one: 1.5 / 1.3 - 1.8 / 1.6.
  const plan::Plan dear = plan::make_plan(*cost_model("{model: ratio, cost_ratio: 0.3}"), {}, curve);
  REQUIRE(dear.best == 1);
  REQUIRE(dear.margins.size() == 2);
  CHECK(dear.margins[1].over == 2);
  CHECK(dear.margins[1].margin == Approx(1.5 / 1.3 - 1.8 / 1.6).epsilon(1e-12));
}

// Logs of requests whose alpha is .5 or .9, with equal lengths and with lengths that differ by a factor of a hundred: the truth
// is the ratio of means.
TEST_CASE("a plan's margins from traces cover the truth, with requests of equal and of unequal length", "[.slow]") {
  const double alpha[2] = {0.5, 0.9};
  const double truth = [&] {  // at draft length 1: rounds of a request of n tokens are n / (1 + alpha)
    return 1.0 / (0.5 / (1.0 + alpha[0]) + 0.5 / (1.0 + alpha[1]));
  }();
  std::mt19937 random(20261121);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto cost = cost_model("{model: ratio, cost_ratio: 0.1}");
  tests::Coverage all;
  constexpr int kLogs = 300;
  for (const int requests : {10, 40})
    for (const bool unequal : {false, true}) {
      tests::Coverage own;
      tests::Coverage tokens_apart;  // the mutant: every position is independent of the others of its request
      for (int log = 0; log < kLogs; ++log) {
        std::string text;
        double positions = 0.0;
        for (int r = 0; r < requests; ++r) {
          const double a = alpha[uniform(random) < 0.5 ? 0 : 1];
          const int length = unequal ? std::min(static_cast<int>(30.0 * std::pow(1.0 - uniform(random), -0.5)), 3000) : 60;
          positions += length;
          text += fmt::format("{{\"request\": {}, \"draft_length\": 1, \"accepted\": [", r);
          for (int i = 0; i < length; ++i) text += fmt::format("{}{}", i > 0 ? "," : "", uniform(random) < a ? 1 : 0);
          text += "]}\n";
        }
        const TemporaryFile file(text);
        const plan::Plan plan = plan::make_plan(*cost, {}, plan::trace_acceptance(file.path(), 1));
        // The margin over not drafting is the best length's speedup minus 1, whichever length that is.
        REQUIRE(plan.best == 1);
        const double off = plan.margins[0].margin - (truth / 1.1 - 1.0);
        own.add(off, plan.margins[0].half_width);
        const double rate = plan.points[1].tokens_per_round - 1.0;
        tokens_apart.add(off, 1.96 * std::sqrt(rate * (1.0 - rate) / (positions / (1.0 + rate))) / 1.1);
      }
      INFO(requests << " requests, unequal " << unequal << ": " << own.text() << "; positions as independent "
                    << tokens_apart.text());
      CHECK(own.right());
      CHECK_FALSE(tokens_apart.right());
      all.add(own);
    }
  INFO(all.text());
  CHECK(all.share() >= tests::kLeastCoverage);
  CHECK(all.share() <= tests::kMostCoverage);
}

TEST_CASE("a plan's margins from simulated rounds cover the truth", "[.slow]") {
  // alpha .7 at every position: tokens per round in closed form.
  const auto cost = cost_model("{model: ratio, cost_ratio: 0.1}");
  const auto speedup = [](int k) { return (1.0 - std::pow(0.7, k + 1)) / 0.3 / (1.0 + 0.1 * k); };
  std::map<int, tests::Coverage> held;
  tests::Coverage unpaired;  // the mutant: draft lengths as if each had its own rounds
  for (int seed = 1; seed <= 300; ++seed) {
    const spec::Experiment one = tests::experiment_of(
        fmt::format("{{experiment: plan, seed: {}, pair: {{vocab: 50, target: {{family: zipf, exponent: 1.1}}, draft: {{from: "
                    "target, transform: "
                    "overlap, value: 0.7}}}}, decode: {{drafter: {{kind: chain, draft_length: 4}}, verifier: token}}}}",
                    seed));
    const AcceptanceCurve curve = plan::simulated_acceptance(one.cells[0], 6, 131072);
    const plan::Plan plan = plan::make_plan(*cost, {}, curve);
    for (const plan::Margin& margin : plan.margins) {
      const double off = margin.margin - (speedup(plan.best) - (margin.over > 0 ? speedup(margin.over) : 1.0));
      held[margin.over == 0 ? 0 : 1].add(off, margin.half_width);
      if (margin.over == 0) continue;
      const auto error = [&](int k) {
        const double n = static_cast<double>(curve.parts.size());
        double squares = 0.0;
        for (const auto& part : curve.parts) squares += std::pow(part[index_of(k)] - curve.tokens_per_round[index_of(k)], 2);
        return std::sqrt(squares / (n * (n - 1.0))) / (1.0 + 0.1 * k);
      };
      unpaired.add(off, 2.04 * std::hypot(error(plan.best), error(margin.over)));
    }
  }
  for (const auto& [over, one] : held) {
    INFO((over == 0 ? "over not drafting: " : "over another length: ") << one.text() << "; unpaired " << unpaired.text());
    CHECK(one.right());
    CHECK(one.share() >= 0.92);
  }
  CHECK_FALSE(unpaired.right());
}

TEST_CASE("the map does not depend on threads, and leaves out what does not fit") {
  const auto cost = cost_model("{model: roofline, hardware: rtx-4090, target: llama-3.1-8b, draft: llama-3.2-1b}");
  const std::vector<double> batches = {1, 16, 256};
  const std::vector<double> contexts = {512, 65536};
  const std::vector<double> alphas = {0.3, 0.8};
  const auto one = plan::make_map(*cost, batches, contexts, alphas, 8, 1);
  const auto three = plan::make_map(*cost, batches, contexts, alphas, 8, 3);
  REQUIRE(one.size() == 12);
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].speedup == three[i].speedup);
    CHECK(one[i].regime == three[i].regime);
    // 24 GB, .9 of them, minus 17.3 GiB of weights and the memory of vLLM's largest step: some 15,000 tokens at 160 KiB for both
    // models.
    CHECK((one[i].regime != plan::Regime::does_not_fit) == (one[i].batch * one[i].context < 15000.0));
  }
  CHECK(one.front().known());
  CHECK_FALSE(one.back().known());
  CHECK(plan::largest_batch(*cost, 65536, 2, cost::Kept::both) == 0.0);
  // Exactly: one sequence more does not fit. A power of two is a mutant.
  for (const auto& [look_ahead, kept] : {std::pair{4, cost::Kept::both}, {1, cost::Kept::target}}) {
    const double batch = plan::largest_batch(*cost, 512, look_ahead, kept);
    CHECK(batch > 16.0);
    CHECK((static_cast<int>(batch) & (static_cast<int>(batch) - 1)) != 0);
    CHECK(cost->memory_budget({batch, 512}, look_ahead, kept)->fits());
    CHECK_FALSE(cost->memory_budget({batch + 1.0, 512}, look_ahead, kept)->fits());
  }
  CHECK(plan::largest_batch(*cost_model("{model: ratio, cost_ratio: 0.1}"), 512, 2, cost::Kept::both) == plan::kUnlimitedBatch);
}

TEST_CASE("the map marks places that a table does not reach") {
  // Both models to context 4096; the target's verifications to 5 tokens and batch 4.
  std::string rows = "model,tokens,batch,context,ms\n";
  for (const char* model : {"target", "draft"})
    for (const int tokens : {1, 5})
      for (const int batch : {1, 4})
        for (const int context : {0, 4096})
          rows += std::string(model) + "," + std::to_string(tokens) + "," + std::to_string(batch) + "," +
                  std::to_string(context) + (model[0] == 't' ? ",10\n" : ",1\n");
  const TemporaryFile file(rows);
  const auto cost = cost_model("{model: table, file: " + file.path() + "}");
  for (const auto& cell : plan::make_map(*cost, {1, 2, 8}, {512, 4096, 8192}, {0.05, 0.7}, 4, 2)) {
    // The fourth draft token is drafted at context + 3.
    const bool covered = cell.batch <= 4 && cell.context + 3 <= 4096;
    CHECK((cell.regime == plan::Regime::not_covered) == !covered);
    CHECK(cell.known() == covered);
    CHECK((cell.regime == plan::Regime::pays) == (covered && cell.alpha > 0.1));
    if (!covered) CHECK(cell.best == 0);
  }
  for (const auto& cell : plan::make_map(*cost, {1}, {512}, {0.7}, 5, 1))  // 6 verified tokens are beyond the table
    CHECK(cell.regime == plan::Regime::not_covered);
}

TEST_CASE("draft lengths within the noise of the estimates are a tie with the best, and only those") {
  const AcceptanceCurve curve = plan::constant_acceptance(0.7, 8);
  const auto priced = cost_model("{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}");
  const plan::Plan plan = plan::make_plan(*priced, {1, 1024}, curve);
  REQUIRE(plan.best > 1);
  CHECK(plan.noise > 0.0);
  CHECK(plan.noise < 0.1);
  CHECK_FALSE(plan.ties.empty());
  for (const plan::PlanPoint& point : plan.points) {
    if (point.draft_length == plan.best) continue;
    const bool tie = std::find(plan.ties.begin(), plan.ties.end(), point.draft_length) != plan.ties.end();
    const double lost = std::log(plan.best_point().speedup / point.speedup);
    INFO("draft length " << point.draft_length << " loses " << lost);
    if (lost > plan.noise) CHECK_FALSE(tie);
    if (tie) CHECK(lost < plan.noise);
  }
  CHECK(std::find(plan.ties.begin(), plan.ties.end(), 0) == plan.ties.end());
  // A cost ratio states no error, so there are no ties.
  CHECK(plan::make_plan(*cost_model("{model: ratio, cost_ratio: 0.1}"), {1, 1024}, curve).ties.empty());
}

TEST_CASE("a common error of a whole type does not tie draft lengths") {
  // Kernels for 4-bit weights that were not measured on the GPU: an error of 28 % of a pass, most of it common to all passes.
  // Mutant: errors of unmeasured kernels are as independent as residuals of measured ones, which ties draft lengths 1 to 8.
  const auto priced = cost_model(
      "{model: roofline, hardware: rtx-3090, target: {preset: llama-2-7b, dtype: int4}, draft: {preset: eagle-head-7b, dtype: "
      "fp16}, engine: graphs}");
  CHECK(priced->relative_error(cost::Role::target, {1, 1, 512, 1}) > 0.2);
  const plan::Plan plan = plan::make_plan(*priced, {1, 512}, plan::constant_acceptance(0.8, 8));
  REQUIRE(plan.best > 2);
  CHECK(plan.noise < 0.18);
  CHECK(std::find(plan.ties.begin(), plan.ties.end(), 1) == plan.ties.end());
}

// Passes with invented errors: 10 ms for a target's, 1 ms for a draft's. `kernels`: the error of the target's kernels; `belief`:
// the knowledge of the server's factors.
class StatedErrors final : public cost::CostModel, private cost::Uncertainty {
 public:
  StatedErrors(double kernels, std::optional<cost::FactorBelief> belief) : kernels_(kernels), belief_(std::move(belief)) {}
  [[nodiscard]] cost::PassTime pass(cost::Role role, const cost::Pass&) const override {
    cost::PassTime time;
    time.weights = role == cost::Role::target ? 0.010 : 0.001;
    return time;
  }
  [[nodiscard]] double round_overhead(double) const override { return 0.0; }
  [[nodiscard]] const cost::Uncertainty* uncertainty() const override { return this; }

 private:
  [[nodiscard]] std::optional<cost::FactorBelief> factors() const override { return belief_; }
  [[nodiscard]] double kernel_error(cost::Role role, const cost::Pass&) const override {
    return role == cost::Role::target ? kernels_ : 0.0;
  }
  double kernels_;
  std::optional<cost::FactorBelief> belief_;
};

cost::FactorBelief known_but(cost::Factor factor, double error) {
  cost::FactorBelief belief;
  const auto at = static_cast<std::size_t>(factor);
  belief.covariance[at][at] = error * error;
  return belief;
}

TEST_CASE("the noise between two ways to decode comes from the parts that they do not share") {
  const cost::Workload workload{1, 512};
  const auto price = [&](const cost::CostModel& model, int drafts) -> plan::RoundEstimate {
    return {&model, workload, drafts + 1.0, cost::round_time(model, workload, drafts, 0.0)};
  };
  const double always = cost::kDiscrepancies.tpot;
  // Passes of 10 and of 10 + 3 ms of matrix products: a factor of all products counts once in a time and cancels in a ratio.
  // Mutant: it counts in the ratio, which ties everything.
  const StatedErrors products(0.0, known_but(cost::Factor::products, 0.17));
  CHECK(plan::estimate_error(price(products, 3)) == Approx(std::hypot(0.17, always)));
  CHECK(plan::latency_noise(price(products, 2), price(products, 2)) == 0.0);
  const double of_modes = std::sqrt(2.0 * always * always * (1.0 - std::exp(-0.5 * 1.2 * 1.2)));
  CHECK(plan::latency_noise(price(products, 0), price(products, 3)) == Approx(of_modes));
  // The extra work of speculative rounds counts only in comparison with a step without speculation. Mutants: between two lengths;
  // left out.
  const StatedErrors rounds(0.0, known_but(cost::Factor::speculation, 0.17));
  const double of_lengths = std::sqrt(2.0 * always * always * (1.0 - std::exp(-0.5 / 64.0)));
  CHECK(plan::latency_noise(price(rounds, 2), price(rounds, 3)) == Approx(of_lengths));
  CHECK(plan::latency_noise(price(rounds, 0), price(rounds, 3)) == Approx(std::hypot(0.17, of_modes)));
  CHECK(plan::latency_noise(price(rounds, 3), price(rounds, 0)) == Approx(std::hypot(0.17, of_modes)));
  CHECK(plan::estimate_error(price(rounds, 0)) == Approx(always));
  // 1,000 us of host time per draft pass: 3 ms of a round of 13, 2 of one of 12. Mutants: one pass too few; microseconds as
  // seconds.
  const StatedErrors drafts(0.0, known_but(cost::Factor::draft_pass, 1000.0));
  CHECK(plan::estimate_error(price(drafts, 3)) == Approx(std::hypot(3.0 / 13.0, always)));
  CHECK(plan::latency_noise(price(drafts, 2), price(drafts, 3)) == Approx(std::hypot(3.0 / 13.0 - 2.0 / 12.0, of_lengths)));
  const StatedErrors steps(0.0, known_but(cost::Factor::step, 1000.0));
  CHECK(plan::latency_noise(price(steps, 0), price(steps, 3)) == Approx(std::hypot(1.0 / 10.0 - 1.0 / 13.0, of_modes)));
  // Kernels: .7 of the variance depends only on the number of rows, and a pass counts by its share of the round. Mutants: all of
  // it, none of it, shares left out.
  const StatedErrors kernels(0.1, std::nullopt);
  const double of_2 = 0.1 * 10 / 12;
  const double of_3 = 0.1 * 10 / 13;
  CHECK(plan::latency_noise(price(kernels, 2), price(kernels, 3)) == Approx(std::sqrt(0.7 * (of_2 * of_2 + of_3 * of_3))));
  CHECK(plan::estimate_error(price(kernels, 2)) == Approx(std::sqrt(0.7) * of_2));
}

TEST_CASE("a verdict needs 95 % of the probability on its side") {
  // Normal quantiles: 95 % are below 1.6449 standard errors. Mutants: two-sided; the opposite sign.
  CHECK(plan::verdict_of({1.66 * 0.1, 0.1}) == plan::Verdict::pays);
  CHECK(plan::verdict_of({1.63 * 0.1, 0.1}) == plan::Verdict::too_close);
  CHECK(plan::verdict_of({-1.63 * 0.1, 0.1}) == plan::Verdict::too_close);
  CHECK(plan::verdict_of({-1.66 * 0.1, 0.1}) == plan::Verdict::does_not_pay);
  CHECK(plan::Gain{0.0553, 0.1}.pays() == Approx(0.7099).margin(1e-3));
  CHECK(plan::verdict_text({std::log(1.04), 0.0709}) == "too close to call: P(pays) = 0.71, expected gain 4 %");
  CHECK(plan::Gain{0.0, 0.1}.high() == Approx(1.21654).margin(1e-4));  // exp(.196)
  CHECK(plan::verdict_of({0.01, 0.0}) == plan::Verdict::pays);         // no error is claimed
}

TEST_CASE("a tie is a difference within the stated noise: just below it, but not above") {
  // Rounds of 10 + k ms with the same acceptance, so that two lengths differ by an amount that does not depend on the noise.
  // Mutants: a tie by twice the noise or by half of it, or by the error of one round instead of the difference.
  const AcceptanceCurve curve = plan::constant_acceptance(0.7, 8);
  const auto ties = [&](double kernels) {
    const StatedErrors model(kernels, std::nullopt);
    return plan::make_plan(model, {1, 512}, curve);
  };
  const plan::Plan sure = ties(1e-6);
  const auto lost = [&](int k) {
    return std::log(sure.best_point().speedup / sure.points.at(static_cast<std::size_t>(k)).speedup);
  };
  REQUIRE(sure.points.at(1).draft_length == 1);
  CHECK(sure.ties.empty());
  const auto tied = [](const plan::Plan& plan, int k) {
    return std::find(plan.ties.begin(), plan.ties.end(), k) != plan.ties.end();
  };
  for (int k = 1; k <= 8; ++k) {
    if (k == sure.best) continue;
    // The noise between the two for kernels of error 1, which grows with that error only.
    const StatedErrors unit(1.0, std::nullopt);
    const auto price = [&](int drafts) -> plan::RoundEstimate {
      return {&unit, {1, 512}, drafts + 1.0, cost::round_time(unit, {1, 512}, drafts, 0.0)};
    };
    const double edge = lost(k) / plan::latency_noise(price(sure.best), price(k));
    INFO("draft length " << k << " loses " << lost(k));
    CHECK(tied(ties(1.05 * edge), k));
    CHECK_FALSE(tied(ties(0.95 * edge), k));
  }
}

}  // namespace specsim::plan_test
