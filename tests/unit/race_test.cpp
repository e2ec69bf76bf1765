// How early methods may be dropped from a ranking.
#include "sim/answers/plan/race.h"
#include "tests/support/cells.h"

#include "sim/answers/plan/ranking.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>

namespace specsim::race_test {

namespace {

constexpr std::size_t kMethods = 12;

// The share of many races that drop the truly fastest method, whose lead is so small that it is hard to detect.
double dropped(const plan::RaceRule& rule) {
  constexpr int kRaces = 4000;
  constexpr double kLead = 0.0001;
  constexpr double kSpread =
      0.02;  // standard deviation of one method's speedup in a run, relative to the part that all methods share
  std::mt19937_64 random(20261123);
  std::normal_distribution<double> normal;
  int wrong = 0;
  for (int race = 0; race < kRaces; ++race) {
    std::vector<std::vector<double>> speedups(kMethods);
    std::vector<bool> in(kMethods, true);
    bool over = false;
    for (const int look : rule.looks) {
      if (over) break;
      while (speedups[0].size() < static_cast<std::size_t>(look)) {
        const double world = 1.8 + 0.1 * normal(random);
        for (std::size_t i = 0; i < kMethods; ++i)
          speedups[i].push_back(world * ((i == 0 ? 1.0 + kLead : 1.0) + kSpread * normal(random)));
      }
      std::vector<std::vector<double>> still;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < kMethods; ++i)
        if (in[i]) {
          still.push_back(speedups[i]);
          who.push_back(i);
        }
      const plan::RaceLook seen = plan::race_state(rule, still, kMethods);
      for (std::size_t i = 0; i < who.size(); ++i)
        if (seen.behind[i]) in[who[i]] = false;
      over = seen.over;
    }
    wrong += in[0] ? 0 : 1;
  }
  return static_cast<double>(wrong) / kRaces;
}

std::vector<double> runs(double mean, double spread) {  // 8 of them
  std::vector<double> all;
  for (const double z : {-1.4, -0.9, -0.5, -0.1, 0.1, 0.5, 0.9, 1.4}) all.push_back(mean + spread * z);
  return all;
}

}  // namespace

TEST_CASE("the fastest method is dropped with the stated probability at most; rules that stop too early are caught", "[race]") {
  const plan::RaceRule rule;
  const double error = 4.0 * std::sqrt(rule.error * (1.0 - rule.error) / 4000.0);
  CHECK(dropped(rule) <= rule.error + error);
  plan::RaceRule uncorrected = rule;  // mutant: each test at the level that is stated for all
  uncorrected.error = rule.error * static_cast<double>(rule.looks.size()) * (kMethods - 1);
  CHECK(dropped(uncorrected) > rule.error + error);
  plan::RaceRule impatient = rule;  // mutant: looks after only two runs, with the corrections of a rule that starts later
  impatient.looks = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  impatient.error = rule.error * static_cast<double>(impatient.looks.size()) / static_cast<double>(rule.looks.size()) * 4.0;
  CHECK(dropped(impatient) > rule.error + error);
}

TEST_CASE("who leaves a race, and when it is over", "[race]") {
  const plan::RaceRule rule;
  const auto look = [&](const std::vector<std::vector<double>>& speedups) { return plan::race_state(rule, speedups, 12); };
  const plan::RaceLook clear = look({runs(1.6, 0.01), runs(1.8, 0.01), runs(1.7, -0.01)});
  CHECK(clear.behind == std::vector<bool>{true, false, true});
  CHECK(clear.over);
  const plan::RaceLook close = look({runs(1.8, 0.05), runs(1.79, -0.05), runs(1.0, 0.01)});
  CHECK(close.behind == std::vector<bool>{false, false, true});
  CHECK_FALSE(close.over);
  // All equal: none is dropped, and none needs more runs.
  const plan::RaceLook tie = look({runs(1.8, 0.05), runs(1.801, 0.05)});
  CHECK(tie.behind == std::vector<bool>{false, false});
  CHECK(tie.over);
  const plan::RaceLook same = look({runs(1.8, 0.05), runs(1.8, 0.05)});
  CHECK(same.behind == std::vector<bool>{false, false});
  CHECK(same.over);
  CHECK(look({runs(1.0, 0.5)}).over);
}

TEST_CASE("as many runs as the ranking needs: the same on any number of threads, and in the order of all runs",
          "[race][ranking]") {
  const spec::Experiment all = tests::experiment_of(
      "{experiment: raced, rounds: 65536, pair: {vocab: 50, target: {family: normal_logits, sigma: 3}, draft: {from: target, "
      "transform: logit_noise, value: 1}}, decode: {drafter: {kind: chain, draft_length: 1}, verifier: token}, cost: {model: "
      "ratio, "
      "cost_ratio: 0.1}, context: {process: iid, pool: 64}, sweep: {workload.batch: [1, 8], decode: [{drafter: {kind: chain, "
      "draft_length: 3}, verifier: token}, {drafter: {kind: chain, draft_length: 4}, verifier: token}, {drafter: {kind: chain, "
      "draft_length: 4}, verifier: block}, {drafter: {kind: chain, draft_length: 20}, verifier: token}]}}");
  std::vector<const spec::Cell*> cells;
  for (const spec::Cell& cell : all.cells) cells.push_back(&cell);
  const auto ranked = [&](unsigned threads, plan::Draws draws, const plan::FirstAnswer& first = {}) {
    run::RunOptions options;
    options.threads = threads;
    return plan::rank_methods(cells, options, draws, first);
  };
  int answers = 0;
  const std::vector<plan::Ranking> raced = ranked(1, plan::Draws::as_needed, [&](const std::vector<plan::Ranking>& first) {
    ++answers;
    for (const plan::Ranking& ranking : first)
      for (const plan::Contender& one : ranking.contenders) CHECK(one.replicates == plan::kFirstAnswer);
  });
  CHECK(answers == 1);
  CHECK(plan::ranking_csv(raced) == plan::ranking_csv(ranked(3, plan::Draws::as_needed)));
  const std::vector<plan::Ranking> full = ranked(1, plan::Draws::all);
  REQUIRE(raced.size() == full.size());
  for (std::size_t r = 0; r < raced.size(); ++r) {
    REQUIRE(raced[r].contenders.size() == 4);
    CHECK(raced[r].contenders.front().row.cell == full[r].contenders.front().row.cell);
    // Drafts of 20 never pay here: they are dropped at the first look, with about the same gap as in all runs.
    const plan::Contender& last = raced[r].contenders.back();
    CHECK(last.row.cell->draft_length() == 20);
    CHECK(last.replicates == 8);
    CHECK(last.row.counts.rounds == 8 * 4096);
    CHECK(last.behind == Approx(full[r].contenders.back().behind).margin(last.behind_half_width));
    for (const plan::Contender& one : full[r].contenders) CHECK(one.replicates == plan::kReplicates);
    for (std::size_t i = 1; i < 4; ++i) CHECK(raced[r].contenders[i].replicates <= raced[r].contenders[0].replicates);
  }
}

}  // namespace specsim::race_test
