// Verdicts from counts and distributions that are given by hand.
#include "sim/judge/agreement.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

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

}  // namespace specsim::agreement_test
