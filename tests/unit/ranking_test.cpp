// Methods ranked by paired pieces of runs.
#include "sim/experiment/ranking.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>

using namespace specsim;
using experiment::Contender;
using experiment::Ranking;

namespace {

std::string yaml_of(const std::string& methods, const std::string& rest = "", int seed = 1) {
  return fmt::format(
      "{{experiment: ranked, seed: {}, rounds: 200000, pair: {{vocab: 50, target: {{family: zipf, exponent: 1.1}}, draft: "
      "{{from: "
      "target, transform: overlap, value: 0.7}}}}, decode: {{drafter: {{kind: chain, draft_length: 1}}, verifier: token}}, cost: "
      "{{model: ratio, cost_ratio: 0.1}}, sweep: {{decode: [{}]{}}}}}",
      seed, methods, rest);
}

std::string chain(int draft_length, const char* verifier) {
  return fmt::format("{{drafter: {{kind: chain, draft_length: {}}}, verifier: {}}}", draft_length, verifier);
}

std::vector<Ranking> ranked(const std::vector<const experiment::Experiment*>& experiments, unsigned threads = 1) {
  std::vector<const experiment::Cell*> cells;
  for (const experiment::Experiment* one : experiments)
    for (const experiment::Cell& cell : one->cells) cells.push_back(&cell);
  experiment::RunOptions options;
  options.threads = threads;
  return experiment::rank_methods(cells, options);
}

}  // namespace

TEST_CASE("methods are ranked workload by workload, fastest first, on any number of threads", "[ranking]") {
  const experiment::Experiment all = tests::experiment_of(
      yaml_of(chain(2, "token") + ", " + chain(5, "token") + ", " + chain(5, "block"), ", workload.batch: [1, 8]"));
  const std::vector<Ranking> rankings = ranked({&all});
  REQUIRE(rankings.size() == 2);
  CHECK(rankings[0].workload == "batch 1, context 512");
  CHECK(rankings[1].workload == "batch 8, context 512");
  for (const Ranking& ranking : rankings) {
    REQUIRE(ranking.contenders.size() == 3);
    CHECK(ranking.pieces == 12);
    for (std::size_t i = 0; i + 1 < 3; ++i) CHECK(ranking.contenders[i].speedup >= ranking.contenders[i + 1].speedup);
    CHECK(ranking.contenders[0].behind == 0.0);
    CHECK(ranking.contenders[0].behind_error < 1e-12);
  }
  CHECK(experiment::method_text(*rankings[0].contenders[0].row.cell) == "chain draft_length 5 | block");
  CHECK(experiment::ranking_csv(rankings) == experiment::ranking_csv(ranked({&all}, 3)));
}

TEST_CASE("chance that methods share cancels between them", "[ranking]") {
  // The same rounds at two prices: how far one is behind is no matter of chance, and unpaired pieces would make it one.
  const experiment::Experiment cheap = tests::experiment_of(yaml_of(chain(4, "token")));
  std::string yaml = yaml_of(chain(4, "token"));
  yaml.replace(yaml.find("cost_ratio: 0.1"), 15, "cost_ratio: 0.3");
  const experiment::Experiment dear = tests::experiment_of(yaml);
  const std::vector<Ranking> rankings = ranked({&dear, &cheap});
  REQUIRE(rankings.size() == 1);
  REQUIRE(rankings[0].contenders.size() == 2);
  const Contender& behind = rankings[0].contenders[1];
  CHECK(behind.behind == Approx(1.0 - 1.4 / 2.2).epsilon(1e-12));
  CHECK(behind.behind_error < 1e-12);
  CHECK(behind.speedup_error > 1e-4);
}

TEST_CASE("the interval holds the true difference as often as it says", "[ranking]") {
  // token at draft lengths 2 and 4, alpha .7: speedups in closed form.
  const auto truth = [](int length) { return (1.0 - std::pow(0.7, length + 1)) / 0.3 / (1.0 + 0.1 * length); };
  const double expected = 1.0 - truth(2) / truth(4);
  REQUIRE(expected > 0.0);
  int inside = 0;
  int inside_third = 0;  // of intervals a third as wide
  constexpr int kRuns = 60;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const experiment::Experiment all = tests::experiment_of(yaml_of(chain(2, "token") + ", " + chain(4, "token"), "", seed));
    const std::vector<Ranking> rankings = ranked({&all});
    const Contender& second = rankings.at(0).contenders.at(1);
    const double half_width = experiment::half_width(second.behind_error, rankings[0].pieces);
    inside += std::abs(second.behind - expected) <= half_width ? 1 : 0;
    inside_third += std::abs(second.behind - expected) <= half_width / 3.0 ? 1 : 0;
  }
  // Of 60 at 99 %: fewer than 54 has probability 2e-6. At a third of the width, with 11 degrees of freedom, 68 % are inside, and
  // 54 or more has probability 6e-5: what an error too small by a factor 3 would look like.
  CHECK(inside >= 54);
  CHECK(inside_third < 54);
}

TEST_CASE("a few rounds beyond the last whole piece do not change what is said of errors", "[ranking]") {
  const auto with_rounds = [](int rounds) {
    std::string yaml = yaml_of(chain(2, "token") + ", " + chain(4, "token"));
    yaml.replace(yaml.find("200000"), 6, std::to_string(rounds));
    const experiment::Experiment all = tests::experiment_of(yaml);
    return ranked({&all}).at(0);
  };
  const Ranking whole = with_rounds(12 * 64 * 256);
  const Ranking more = with_rounds(12 * 64 * 256 + 64);
  CHECK(more.pieces == whole.pieces);
  CHECK(more.contenders[0].speedup_error == whole.contenders[0].speedup_error);
  CHECK(more.contenders[1].behind_error == whole.contenders[1].behind_error);
}

TEST_CASE("what cannot be ranked is said", "[ranking]") {
  const experiment::Experiment one = tests::experiment_of(yaml_of(chain(2, "token")));
  const experiment::Experiment other = tests::experiment_of(yaml_of(chain(3, "token"), "", 2));
  CHECK_THROWS_WITH(ranked({&one, &other}), Catch::Contains("laws, seed or rounds of ranked are not those of ranked"));
  std::string brief = yaml_of(chain(2, "token"));
  brief.replace(brief.find("200000"), 6, "100000");
  const experiment::Experiment few = tests::experiment_of(brief);
  std::string dear = yaml_of(chain(3, "token"));
  dear.replace(dear.find("model: ratio, cost_ratio: 0.1"), 29,
               "model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b");
  const experiment::Experiment small = tests::experiment_of(dear);
  dear.replace(dear.find("llama-3.1-8b"), 12, "llama-2-7b");
  const experiment::Experiment large = tests::experiment_of(dear);
  CHECK_THROWS_WITH(ranked({&small, &large}), Catch::Contains("plain decoding of ranked takes another time"));
  CHECK_THROWS_WITH(ranked({&few}), Catch::Contains("rounds of ranked make 6 pieces of a run, allowed: at least 8"));
}
