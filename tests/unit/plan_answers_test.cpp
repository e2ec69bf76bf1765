// Answers of plans that can be calculated by hand: kinds of requests, cliffs, curves of distributions, files.
#include "sim/answers/plan/advice.h"
#include "sim/answers/plan/closed_form_answers.h"
#include "sim/answers/plan/planned.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace specsim::plan_answers_test {

namespace {

// A target's pass takes 10 ms up to a number of rows and 20 ms beyond, a draft's 1 us.
class Tiles final : public cost::CostModel {
 public:
  explicit Tiles(double rows) : rows_(rows) {}
  [[nodiscard]] cost::PassTime pass(cost::Role role, const cost::Pass& pass) const override {
    cost::PassTime time;
    time.weights = role == cost::Role::draft ? 1e-6 : pass.batch * pass.tokens <= rows_ ? 0.010 : 0.020;
    return time;
  }
  [[nodiscard]] double round_overhead(double) const override { return 0.0; }

 private:
  double rows_;
};

std::string overlap(const std::string& more) {
  return "{experiment: plan_answers, seed: 3, rounds: 40000, pair: {vocab: 4, target: {family: uniform}, draft: {from: target, "
         "transform: overlap, value: 0.7, shape: disjoint_tail}}, decode: {verifier: token, drafter: {kind: chain, draft_length: "
         "2}}, " +
         more + "}";
}

}  // namespace

TEST_CASE("kinds of requests that emit equally many tokens count by the time that they take", "[plan]") {
  // Alpha .8 for three of four requests and .4 for the fourth; a draft pass takes half of a target pass. At draft length 1 rounds
  // emit 1.8 and 1.4 tokens: together 1 / (.75 / 1.8 + .25 / 1.4) = 1.68. Its speedup is 1.68 / 1.5 = 1.12; that of draft length
  // 2 is 1 / (.75 / 2.44 + .25 / 1.56) / 2 = 1.069. Alpha .8 alone is best at 2, 2.44 / 2 = 1.22, and alpha .4 without drafts.
  // Mutants: arithmetic means (1.7); weights that do not sum to 1; the two means exchanged.
  const plan::RequestAnswers answers = plan::answers_of_requests({0.8, 0.4}, {3.0, 1.0}, 1, theory::RatioCost{0.5});
  CHECK(answers.tokens_per_round == Approx(1.68));
  REQUIRE(answers.kinds.size() == 2);
  CHECK(answers.kinds[0].share == Approx(0.75));
  CHECK(answers.kinds[1].share == Approx(0.25));
  CHECK(answers.kinds[0].tokens_per_round == Approx(1.8));
  CHECK(answers.kinds[1].tokens_per_round == Approx(1.4));
  CHECK(answers.kinds[0].best.draft_length == 2);
  CHECK(answers.kinds[0].best.speedup == Approx(1.22));
  CHECK(answers.kinds[1].best.draft_length == 0);
  CHECK(answers.best.draft_length == 1);
  CHECK(answers.best.speedup == Approx(1.12));
  CHECK(answers.speedup_at_own_best == Approx(1.0 / (0.75 / 1.22 + 0.25)));
}

TEST_CASE("a cliff is the first of a few more sequences at which the plan loses a twentieth", "[plan]") {
  // 64 rows are those of 16 sequences with 3 drafts. At alpha .7 these emit 1 + .7 + .49 + .343 = 2.533 tokens in the time of a
  // step without speculation. 17 sequences have more than 64 rows, take twice as long, and are faster with 2 drafts, 2.19.
  const plan::AcceptanceCurve curve = plan::constant_acceptance(0.7, 3);
  const plan::Advice advice = plan::advise(Tiles(64), {16, 512}, curve);
  CHECK(advice.plan.best == 3);
  CHECK(advice.plan.best_point().speedup == Approx(2.533).epsilon(1e-3));
  REQUIRE(advice.cliff.has_value());
  CHECK(advice.cliff->batch == 17.0);
  CHECK(advice.cliff->speedup == Approx(2.533 / 2).epsilon(1e-3));
  CHECK(advice.cliff->best == 2);
  CHECK(advice.cliff->best_speedup == Approx(2.19).epsilon(1e-3));
  // The search includes 21 sequences, a quarter and one more than 16, but no larger batch.
  REQUIRE(plan::advise(Tiles(80), {16, 512}, curve).cliff.has_value());
  CHECK(plan::advise(Tiles(80), {16, 512}, curve).cliff->batch == 21.0);
  CHECK_FALSE(plan::advise(Tiles(84), {16, 512}, curve).cliff.has_value());
}

TEST_CASE("a curve of a config's distributions is the closed form, by theory and by simulation", "[plan][stat]") {
  const spec::Experiment experiment = tests::experiment_of(overlap("cost: {model: ratio, cost_ratio: 0.1}"));
  const spec::Cell& cell = experiment.cells.at(0);
  const plan::AcceptanceCurve theory = plan::predicted_acceptance(cell, 4);
  const plan::AcceptanceCurve simulated = plan::simulated_acceptance(cell, 4, 2'000'000);
  REQUIRE(theory.tokens_per_round.size() == 5);
  REQUIRE(simulated.tokens_per_round.size() == 5);
  double expected = 0.0;
  for (int k = 0; k <= 4; ++k) {
    CAPTURE(k);
    const auto at = static_cast<std::size_t>(k);
    expected += std::pow(0.7, k);  // 1 + alpha + ... + alpha^k
    CHECK(theory.tokens_per_round[at] == Approx(expected));
    CHECK(theory.full_rate[at] == Approx(std::pow(0.7, k)));
    // Two million rounds: an error of at most .0011 tokens and .00036 of the rate, four of which are allowed.
    CHECK(std::abs(simulated.tokens_per_round[at] - expected) < 0.0044);
    CHECK(std::abs(simulated.full_rate[at] - std::pow(0.7, k)) < 0.0015);
  }
  CHECK(theory.source.find("alpha 0.7000 at the first position") != std::string::npos);
  CHECK(simulated.source.find("alpha 0.7") != std::string::npos);
  // Parts of the data for intervals: as many for all draft lengths, and their mean is the whole.
  REQUIRE(simulated.parts.size() > 10);
  double mean = 0.0;
  for (const std::vector<double>& part : simulated.parts) mean += part.at(2) / static_cast<double>(simulated.parts.size());
  CHECK(mean == Approx(simulated.tokens_per_round[2]).epsilon(1e-6));
  // Rounds that are simulated in one piece give no spread. Mutant: parts without rounds, which never differ.
  CHECK(plan::simulated_acceptance(cell, 4, 64).parts.empty());
}

TEST_CASE("maps are written of one cell with times in seconds, and of no other plan", "[plan]") {
  const std::string seconds = "cost: {model: affine, target_fixed_ms: 10, draft_fixed_ms: 1, target_ms_per_token: 0.1}";
  const auto written = [](const std::string& more) {
    const spec::Experiment experiment = tests::experiment_of(overlap(more));
    std::vector<const spec::Cell*> cells;
    for (const spec::Cell& cell : experiment.cells) cells.push_back(&cell);
    plan::PlanningOptions options;
    options.longest = 2;
    options.rounds = 4096;
    return plan::plan_files(plan::plan_cells(cells, options), 2, 1);
  };
  const auto files = [&](const std::string& more) { return written(more).size(); };
  // Batches of a map begin with one sequence, contexts with 512 tokens.
  const std::string map = written(seconds)[2].second;
  CHECK(map.substr(map.find('\n') + 1).find("1,512,0.3,") == 0);
  CHECK(files(seconds) == 4);
  CHECK(files("sweep: {pair.draft.value: [0.6, 0.7]}, " + seconds) == 2);
  CHECK(files("cost: {model: ratio, cost_ratio: 0.1}") == 2);
}

}  // namespace specsim::plan_answers_test
