// The statistical checks of `specsim check` against the shipped code, and against every mutant that they must reject.
#include "sim/experiment/agreement.h"
#include "tests/support/cells.h"
#include "tests/support/mutants.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace specsim {

namespace {

// As a family of cells of the CI grid's size has it.
const double kLevel = experiment::check_level(750);
constexpr std::uint64_t kRounds = 12'000'000;

experiment::Cell ten_tokens() {  // claim M3's laws: chi2(draft || target) = .108
  return tests::experiment_of(
             "{experiment: mutants, seed: 20260301, rounds: 12000000, pair: {vocab: 10, "
             "target: {family: explicit, probabilities: [.3, .25, .15, .1, .08, .05, .03, .02, .01, .01]}, "
             "draft: {family: explicit, probabilities: [.2, .2, .2, .15, .1, .05, .04, .03, .02, .01]}}, "
             "decode: {drafter: {kind: chain, draft_length: 3}}}")
      .cells.at(0);
}

experiment::Cell markov_tokens() {
  return tests::experiment_of(
             "{experiment: mutants, seed: 20260302, rounds: 12000000, pair: {vocab: 6, target: {family: dirichlet, concentration: 1}, "
             "draft: {from: target, transform: logit_noise, value: .8}}, context: {process: markov, order: 1}, "
             "decode: {drafter: {kind: chain, draft_length: 3}}}")
      .cells.at(0);
}

experiment::Agreement judged(const experiment::Cell& cell, const testing::Mutant& mutant) {
  const tests::ReadyCell ready(cell);
  const decode::Counts counts = testing::run_mutant(cell, mutant, kRounds);
  const experiment::Prediction prediction = experiment::predict_exact(cell, ready.facts(), kRounds);
  return experiment::judge_cell(cell, ready.facts(), prediction, counts, kLevel);
}

const testing::Mutant& shipped() {
  static const testing::Mutant none{"none", [] { return std::make_unique<testing::TokenLikeRule>(); }, {}, testing::Figure::scripted, {}};
  return none;
}

}  // namespace

TEST_CASE("the shipped rule passes every check where its mutants are tried") {
  for (const experiment::Cell& cell : {ten_tokens(), markov_tokens()}) {
    const experiment::Agreement agreement = judged(cell, shipped());
    INFO(cell.experiment << " z " << agreement.z_tokens_per_round << " accepted " << agreement.p_accepted_law << " output " << agreement.p_output_law);
    CHECK(agreement.p_tokens_per_round > 1e-3);
    CHECK(agreement.p_accepted_law > 1e-3);
    CHECK(agreement.p_output_law > 1e-3);
    CHECK(agreement.smallest_leak < 0.01);
  }
}

TEST_CASE("every mutant is rejected by a check of check, by name") {
  for (const testing::Mutant& mutant : testing::mutants()) {
    DYNAMIC_SECTION(mutant.name) {
      const experiment::Cell cell = mutant.name == "goes on after a rejection" ? markov_tokens() : ten_tokens();
      const experiment::Agreement agreement = judged(cell, mutant);
      INFO("p of tokens " << agreement.p_tokens_per_round << " accepted " << agreement.p_accepted_law << " output " << agreement.p_output_law);
      switch (mutant.caught_by) {
        case testing::Figure::output_law:
        case testing::Figure::joint_law:  // over a stream, a wrong bonus token shows in the single tokens as well
          CHECK(agreement.p_output_law < kLevel);
          break;
        case testing::Figure::accepted_law: CHECK(agreement.p_accepted_law < kLevel); break;
        case testing::Figure::emitted_law: CHECK(agreement.p_tokens_per_round < kLevel); break;
        case testing::Figure::scripted:  // one word in 2^53: no sample can show it; tests/exact does
          CHECK(agreement.p_output_law > kLevel);
          CHECK(agreement.p_accepted_law > kLevel);
          break;
      }
      // Acceptance figures alone never show a lost distribution.
      if (mutant.name == "resamples from the target" || mutant.name == "residual from abs(target - draft)") CHECK(agreement.p_accepted_law > kLevel);
    }
  }
}

TEST_CASE("p-values of a correct simulation are spread evenly") {
  // 300 seeds of a small cell: the number of p-values below 1/10 is binomial; bounds of probability 1e-6 each.
  int low_tokens = 0;
  int low_accepted = 0;
  int low_output = 0;
  constexpr int kSeeds = 300;
  for (int seed = 0; seed < kSeeds; ++seed) {
    experiment::Experiment one = tests::experiment_of(
        "{experiment: uniform_p, seed: " + std::to_string(1000 + seed) +
        ", rounds: 60000, pair: {vocab: 10, target: {family: zipf, exponent: 1}, draft: {from: target, transform: temperature, value: 2}}, "
        "decode: {drafter: {kind: chain, draft_length: 3}}}");
    const tests::ReadyCell ready(one.cells.at(0));
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    for (std::uint64_t i = 0; i * simulator.chunk_size() < 60000; ++i) simulator.run(i, 60000, counts);
    const experiment::Prediction prediction = experiment::predict_exact(ready.cell(), ready.facts(), 60000);
    const experiment::Agreement agreement = experiment::judge_cell(ready.cell(), ready.facts(), prediction, counts, kLevel);
    low_tokens += agreement.p_tokens_per_round < 0.1 ? 1 : 0;
    low_accepted += agreement.p_accepted_law < 0.1 ? 1 : 0;
    low_output += agreement.p_output_law < 0.1 ? 1 : 0;
  }
  CHECK(low_tokens > 8);  // mean 30, standard deviation 5.2
  CHECK(low_tokens < 58);
  CHECK(low_accepted > 8);
  CHECK(low_accepted < 58);
  CHECK(low_output > 4);  // its four parts are tested on one sample, so Sidak's bound is on the safe side
  CHECK(low_output < 58);
}

}  // namespace specsim
