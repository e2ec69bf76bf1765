// Methods ranked by runs that are paired replicate by replicate.
#include "sim/answers/plan/ranking.h"
#include "sim/foundation/math/quantiles.h"
#include "tests/support/cells.h"
#include "tests/support/coverage.h"
#include "tests/support/overlaps.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <memory>

namespace specsim::ranking_test {

using plan::Contender;
using plan::Ranking;

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

std::vector<Ranking> ranked(const std::vector<const spec::Experiment*>& experiments, unsigned threads = 1) {
  std::vector<const spec::Cell*> cells;
  for (const spec::Experiment* one : experiments)
    for (const spec::Cell& cell : one->cells) cells.push_back(&cell);
  run::RunOptions options;
  options.threads = threads;
  return plan::rank_methods(cells, options);
}

}  // namespace

TEST_CASE("methods are ranked workload by workload, fastest first, on any number of threads", "[ranking]") {
  const spec::Experiment all = tests::experiment_of(
      yaml_of(chain(2, "token") + ", " + chain(5, "token") + ", " + chain(5, "block"), ", workload.batch: [1, 8]"));
  const std::vector<Ranking> rankings = ranked({&all});
  REQUIRE(rankings.size() == 2);
  CHECK(rankings[0].workload == "batch 1, context 512");
  CHECK(rankings[1].workload == "batch 8, context 512");
  for (const Ranking& ranking : rankings) {
    REQUIRE(ranking.contenders.size() == 3);
    for (std::size_t i = 0; i + 1 < 3; ++i) CHECK(ranking.contenders[i].speedup >= ranking.contenders[i + 1].speedup);
    CHECK(ranking.contenders[0].behind == 0.0);
    CHECK(ranking.contenders[0].behind_half_width < 1e-12);
  }
  CHECK(rankings[0].contenders[0].row.cell->method_text == "chain draft_length 5 | block");
  CHECK(plan::ranking_csv(rankings) == plan::ranking_csv(ranked({&all}, 3)));
}

TEST_CASE("chance that methods share cancels between them", "[ranking]") {
  // The same rounds with two costs: the gap is not random, and unpaired replicates would make it random.
  const spec::Experiment cheap = tests::experiment_of(yaml_of(chain(4, "token")));
  std::string yaml = yaml_of(chain(4, "token"));
  yaml.replace(yaml.find("cost_ratio: 0.1"), 15, "cost_ratio: 0.3");
  const spec::Experiment dear = tests::experiment_of(yaml);
  const std::vector<Ranking> rankings = ranked({&dear, &cheap});
  REQUIRE(rankings.size() == 1);
  REQUIRE(rankings[0].contenders.size() == 2);
  const Contender& behind = rankings[0].contenders[1];
  CHECK(behind.behind == Approx(1.0 - 1.4 / 2.2).epsilon(1e-12));
  CHECK(behind.behind_half_width < 1e-12);
  CHECK(behind.speedup_half_width > 3e-4);
}

TEST_CASE("the interval holds the true difference at its stated rate", "[ranking]") {
  // token at draft lengths 2 and 4, alpha .7: speedups in closed form.
  const auto truth = [](int length) { return (1.0 - std::pow(0.7, length + 1)) / 0.3 / (1.0 + 0.1 * length); };
  const double expected = 1.0 - truth(2) / truth(4);
  REQUIRE(expected > 0.0);
  int inside = 0;
  int inside_third = 0;  // number of intervals that would hold it if they were a third as wide
  constexpr int kRuns = 60;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const spec::Experiment all = tests::experiment_of(yaml_of(chain(2, "token") + ", " + chain(4, "token"), "", seed));
    const std::vector<Ranking> rankings = ranked({&all});
    const Contender& second = rankings.at(0).contenders.at(1);
    inside += std::abs(second.behind - expected) <= second.behind_half_width ? 1 : 0;
    inside_third += std::abs(second.behind - expected) <= second.behind_half_width / 3.0 ? 1 : 0;
  }
  // Of 60 at 99 %: fewer than 54 has probability 2e-6. At a third of the width, with 15 degrees of freedom, 66 % are inside, and
  // 54 or more has probability 2e-5: this is the case of an error too small by a factor 3.
  CHECK(inside >= 54);
  CHECK(inside_third < 54);
}

TEST_CASE("the interval holds for the family of distributions, not for one draw of it", "[ranking]") {
  // Each seed has one distribution, and its alpha is random: the truth comes from 20000 of them in a pool.
  const auto yaml = [](int seed, const char* context) {
    return fmt::format(
        "{{experiment: drawn, seed: {}, rounds: 100000, pair: {{vocab: 20, target: {{family: normal_logits, sigma: 2}}, draft: "
        "{{from: target, transform: logit_noise, value: 1}}}}, context: {}, decode: {{drafter: {{kind: chain, draft_length: 2}}, "
        "verifier: token}}, cost: {{model: ratio, cost_ratio: 0.1}}}}",
        seed, context);
  };
  double truth = 0.0;
  const tests::ReadyCell many(yaml(1, "{process: iid, pool: 20000}"));
  for (const double alpha : tests::overlaps_of(many.cell())) truth += (1.0 + alpha + alpha * alpha) / 1.2 / 20000;
  int inside = 0;
  int inside_third = 0;
  int inside_of_one_draw = 0;  // mutant: one draw of the distributions, errors from its rounds alone
  constexpr int kRuns = 60;
  for (int seed = 1; seed <= kRuns; ++seed) {
    const spec::Experiment drawn = tests::experiment_of(yaml(seed, "{process: fixed}"));
    const Contender own = ranked({&drawn}).at(0).contenders.at(0);
    inside += std::abs(own.speedup - truth) <= own.speedup_half_width ? 1 : 0;
    inside_third += std::abs(own.speedup - truth) <= own.speedup_half_width / 3.0 ? 1 : 0;
    judge::Row row;
    row.cell = &drawn.cells[0];
    row.counts = run::run_cells({row.cell}, {}).counts.at(0);
    inside_of_one_draw +=
        std::abs(row.tokens_per_round() / 1.2 - truth) <= 2.6 * row.tokens_per_round_estimate().error / 1.2 ? 1 : 0;
  }
  CHECK(inside >= 54);
  CHECK(inside_third < 54);
  CHECK(inside_of_one_draw < 20);
}

// Intervals of compare are at 99 %: shrunk to 95 % by Student's t with the same degrees of freedom, the test has more power.
TEST_CASE("compare's intervals cover the truth", "[ranking][.slow]") {
  constexpr int kRuns = 300;
  const double freedom = plan::kReplicates - 1.0;
  const double shrunk = math::student_t_half_width(0.95, freedom) / math::student_t_half_width(plan::kRankingLevel, freedom);
  // Closed forms if the overlap is given; for drawn distributions the mean over a pool of 20,000.
  const auto drawn = [](int seed, const char* context, const std::string& decode) {
    return fmt::format(
        "{{experiment: drawn, seed: {}, rounds: 40000, pair: {{vocab: 20, target: {{family: normal_logits, sigma: 2}}, draft: "
        "{{from: target, transform: logit_noise, value: 1}}}}, context: {}, decode: {{drafter: {{kind: chain, draft_length: 1}}, "
        "verifier: token}}, cost: {{model: ratio, cost_ratio: 0.1}}{}}}",
        seed, context, decode);
  };
  const std::string both = ", sweep: {decode: [" + chain(1, "token") + ", " + chain(3, "token") + "]}";
  double truth[2] = {0.0, 0.0};
  const tests::ReadyCell many(drawn(1, "{process: iid, pool: 20000}", ""));
  for (const double a : tests::overlaps_of(many.cell())) {
    truth[0] += (1.0 + a) / 1.1 / 20000;
    truth[1] += (1.0 + a + a * a + a * a * a) / 1.3 / 20000;
  }
  tests::Coverage speedups;
  tests::Coverage behind;
  tests::Coverage one_draw;  // the mutant: errors of the rounds alone
  for (int seed = 1; seed <= kRuns; ++seed) {
    const spec::Experiment all = tests::experiment_of(drawn(seed, "{process: fixed}", both));
    const Ranking ranking = ranked({&all}).at(0);
    for (const Contender& one : ranking.contenders) {
      const double own = truth[one.row.cell->draft_length() == 1 ? 0 : 1];
      speedups.add(one.speedup - own, shrunk * one.speedup_half_width);
      const double tokens = one.row.tokens_per_round();
      one_draw.add(one.speedup - own, 1.96 * one.row.tokens_per_round_estimate().error / tokens * one.speedup);
    }
    const Contender& first = ranking.contenders[0];
    const Contender& second = ranking.contenders[1];
    const double own[2] = {truth[first.row.cell->draft_length() == 1 ? 0 : 1],
                           truth[second.row.cell->draft_length() == 1 ? 0 : 1]};
    const double off = second.behind - (1.0 - own[1] / own[0]);
    behind.add(off, shrunk * second.behind_half_width);
  }
  INFO("speedup " << speedups.text() << ", behind " << behind.text() << ", one draw " << one_draw.text());
  CHECK(speedups.right());
  CHECK(behind.right());
  CHECK_FALSE(one_draw.right());
}

TEST_CASE("a batch that drafts in lockstep is of one draw of the distributions", "[ranking]") {
  const spec::Experiment one = tests::experiment_of(
      "{experiment: lockstep, seed: 1, rounds: 65536, pair: {vocab: 50, target: {family: normal_logits, sigma: 3}, draft: {from: "
      "target, transform: logit_noise, value: 1.5}}, workload: {batch: 32}, decode: {drafter: {kind: chain, draft_length: 8}, "
      "policy: {kind: additive}, verifier: token}, cost: {model: ratio, cost_ratio: 0.1}}");
  const Contender own = ranked({&one}).at(0).contenders.at(0);
  double tokens = 0.0;
  double time = 0.0;
  judge::Row pooled;  // mutant: a batch is assembled from all draws
  for (int replicate = 0; replicate < plan::kReplicates; ++replicate) {
    const spec::Cell cell =
        spec::reseeded(one.cells[0], rng::hash_text(fmt::format("seed 1 world {}", replicate)), 65536 / plan::kReplicates);
    judge::Row row;
    row.cell = &cell;
    row.counts = run::run_cells({&cell}, {}).counts.at(0);
    tokens += static_cast<double>(row.counts.emitted);
    time += static_cast<double>(row.counts.emitted) / (row.tokens_per_round() * row.speedup_per_token());
    row.counts.output.clear();
    if (replicate == 0)
      pooled.counts = row.counts;
    else
      pooled.counts.add(row.counts);
  }
  pooled.cell = &one.cells[0];
  CHECK(own.speedup == Approx(tokens / time).epsilon(1e-12));
  CHECK(pooled.tokens_per_round() * pooled.speedup_per_token() < 0.97 * own.speedup);
}

TEST_CASE("the number of replicates depends on the seed only, whatever else is ranked, and another seed gives other replicates",
          "[ranking]") {
  const auto first = [](int seed, const std::string& methods) {
    const spec::Experiment all = tests::experiment_of(yaml_of(methods, "", seed));
    const std::vector<Ranking> rankings = ranked({&all});
    for (const Contender& one : rankings.at(0).contenders)
      if (one.row.cell->draft_length() == 2) return one.row.counts;
    return decode::Counts();
  };
  CHECK(first(1, chain(2, "token")) == first(1, chain(2, "token") + ", " + chain(4, "token")));
  CHECK(first(1, chain(2, "token")).emitted != first(2, chain(2, "token")).emitted);
}

TEST_CASE("batches that do not fit the memory are left out with a line, unless none fits", "[ranking]") {
  const std::string yaml =
      "{experiment: large, pair: {vocab: 50, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: overlap, "
      "value: 0.7}}, decode: {drafter: {kind: chain, draft_length: 2}, verifier: token}, cost: {model: roofline, hardware: "
      "h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}, workload: {context_length: 8192}, sweep: {decode: [" +
      chain(2, "token") + ", " + chain(4, "token") + "], workload.batch: [";
  const auto read = [&](const char* batches, spec::Misfits misfits, Diagnostics& diagnostics) {
    return spec::read_experiment(config::parse_text(yaml + batches + "]}}", "test", diagnostics), "test", {}, diagnostics,
                                 misfits);
  };
  Diagnostics fine;
  const spec::Experiment some = read("1, 4000", spec::Misfits::left_out, fine);
  CHECK(fine.empty());
  REQUIRE(some.cells.size() == 2);
  CHECK(some.cells[0].workload.batch == 1.0);
  CHECK(some.cells[1].index == 2);
  REQUIRE(some.left_out.size() == 1);
  CHECK_THAT(some.left_out[0], Catch::StartsWith("batch 4000 at context 8192"));
  for (const auto& [batches, misfits] : {std::pair{"1, 4000", spec::Misfits::refused}, {"4000", spec::Misfits::left_out}}) {
    Diagnostics refused;
    static_cast<void>(read(batches, misfits, refused));
    REQUIRE(refused.list().size() == 1);
    CHECK_THAT(refused.list()[0].message, Catch::Contains("cells do not fit the GPU; the smallest: batch 4000"));
  }
}

TEST_CASE("unrankable results cause a message", "[ranking]") {
  const spec::Experiment one = tests::experiment_of(yaml_of(chain(2, "token")));
  const spec::Experiment other = tests::experiment_of(yaml_of(chain(3, "token"), "", 2));
  CHECK_THROWS_WITH(ranked({&one, &other}),
                    Catch::Contains("distributions, seed or rounds of ranked differ from those of ranked"));
  std::string brief = yaml_of(chain(2, "token"));
  brief.replace(brief.find("200000"), 6, "1023");
  const spec::Experiment few = tests::experiment_of(brief);
  std::string dear = yaml_of(chain(3, "token"));
  dear.replace(dear.find("model: ratio, cost_ratio: 0.1"), 29,
               "model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b");
  const spec::Experiment small = tests::experiment_of(dear);
  dear.replace(dear.find("llama-3.1-8b"), 12, "llama-2-7b");
  const spec::Experiment large = tests::experiment_of(dear);
  CHECK_THROWS_WITH(ranked({&small, &large}), Catch::Contains("plain decoding of ranked takes another time"));
  CHECK_THROWS_WITH(ranked({&few}), Catch::Contains("rounds is 1023, allowed: at least 1024, a sequence of 64 in each of"));
}

TEST_CASE("methods that the estimates cannot distinguish are tied, and equal estimates alone do not make a tie", "[ranking]") {
  std::vector<std::unique_ptr<spec::Experiment>> kept;  // rankings refer to their cells
  const auto ranking_by = [&](const std::string& cost, const std::string& methods) {
    std::string yaml = yaml_of(methods);
    const std::string ratio = "{model: ratio, cost_ratio: 0.1}";
    yaml.replace(yaml.find(ratio), ratio.size(), cost);
    kept.push_back(std::make_unique<spec::Experiment>(tests::experiment_of(yaml)));
    return ranked({kept.back().get()}).at(0);
  };
  const std::string roofline = "{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}";
  // The same passes on both sides: the one with higher acceptance is faster whatever a pass takes.
  const Ranking rules = ranking_by(roofline, chain(3, "token") + ", " + chain(3, "block"));
  CHECK(rules.contenders[1].latency_noise < 1e-3);
  CHECK(rules.contenders[1].behind > 1e-3);
  CHECK_FALSE(rules.contenders[1].tied());
  CHECK_FALSE(rules.contenders[0].tied());
  // Neighbours of the best length differ by less than the error of a verification over other rows.
  const Ranking lengths = ranking_by(roofline, chain(2, "token") + ", " + chain(3, "token") + ", " + chain(16, "token"));
  CHECK(lengths.contenders[1].tied());
  CHECK(-std::log1p(-lengths.contenders[1].behind) < lengths.contenders[1].latency_noise);
  CHECK_FALSE(lengths.contenders[2].tied());
  CHECK(lengths.contenders[2].row.cell->draft_length() == 16);
  // A cost ratio states no error, so there are no ties.
  const Ranking sure = ranking_by("{model: ratio, cost_ratio: 0.1}", chain(2, "token") + ", " + chain(3, "token"));
  CHECK(sure.contenders[1].latency_noise == 0.0);
  CHECK_FALSE(sure.contenders[1].tied());
}

TEST_CASE("on an acceptance table the theory's values are next to the simulated ones", "[ranking]") {
  const auto with_context = [](const std::string& context) {
    return tests::experiment_of(
        fmt::format("{{experiment: table, rounds: 200000, pair: {{vocab: 4, target: {{family: uniform}}, draft: {{family: "
                    "uniform}}}}, context: {}, "
                    "decode: {{drafter: {{kind: chain, draft_length: 2, selection: argmax}}, verifier: token}}, cost: {{model: "
                    "ratio, cost_ratio: "
                    "0.1}}, sweep: {{decode: [{{drafter: {{kind: chain, draft_length: 2, selection: argmax}}, verifier: token}}, "
                    "{{drafter: {{kind: "
                    "tree_static, branching: [2, 2], siblings: top_k}}, verifier: tree_point_mass}}]}}}}",
                    context));
  };
  const spec::Experiment table = with_context("{process: acceptance_table, acceptance: [[0.6, 0.2], [0.5, 0.1]]}");
  const std::vector<Ranking> rankings = ranked({&table});
  REQUIRE(rankings.at(0).contenders.size() == 2);
  for (const Contender& one : rankings[0].contenders) {
    // 1 + .6 + .6 .5 of the chain, 1 + .8 + .8 .6 of the tree. Mutant: the tree's second ranks left out, which is the chain.
    const double expected = one.row.cell->judges_blocks() ? 2.28 : 1.9;
    REQUIRE(one.row.exact.known);
    CHECK(one.row.exact.tokens_per_round == Approx(expected).epsilon(1e-12));
    CHECK(std::abs(one.row.tokens_per_round() - expected) < 4 * one.tokens_per_round_error);
    CHECK(std::abs(one.row.tokens_per_round() - (4.18 - expected)) > 20 * one.tokens_per_round_error);
  }
  CHECK(plan::ranking_csv(rankings).find("price_noise,tokens_per_round_exact\n") != std::string::npos);
  // Distributions that each replicate draws again have no single value.
  const spec::Experiment drawn = with_context("{process: iid, pool: 4}");
  const std::vector<Ranking> of_drawn = ranked({&drawn});
  for (const Contender& one : of_drawn.at(0).contenders) CHECK_FALSE(one.row.exact.known);
  CHECK(plan::ranking_csv(of_drawn).find("exact") == std::string::npos);
}

}  // namespace specsim::ranking_test
