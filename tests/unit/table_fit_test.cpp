// The fit to tables of acceptance: parameters that the table determines are recovered, the others stay at their defaults with a
// message.
#include "sim/experiments/fit/table_fit.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace specsim::table_fit_test {

namespace {

// The acceptance of the process itself with these values, on other contexts than a fit has.
std::vector<std::vector<double>> table_of(const fit::RankKind& kind, const fit::TableValues& values, std::size_t depths,
                                          std::size_t ranks) {
  const fit::RankShares& shares = fit::rank_shares(kind, ranks, 7);
  std::vector<std::vector<double>> table;
  for (std::size_t depth = 0; depth < depths; ++depth) table.push_back(shares.at(values, depth, ranks));
  return table;
}

// Both the table's contexts and the fit's are random, with the same spread.
double off(const fit::SpreadParameter& one, double truth) { return (one.value - truth) / (one.error * std::sqrt(2.0)); }

}  // namespace

TEST_CASE("fit_table recovers the draft and its drift within its standard errors", "[fit][stat]") {
  for (const fit::RankKind kind : {fit::RankKind{0.0, false}, fit::RankKind{1.0, false}, fit::RankKind{0.6, true}}) {
    const fit::TableValues truth{1.3, 1.1, 0.6};
    const fit::TableFit fit = fit::fit_table({table_of(kind, truth, 4, 3), kind, ""});
    INFO(fit.yaml());
    CHECK(std::abs(off(fit.noise, truth.noise)) < 4.0);
    CHECK(std::abs(off(fit.noise_spread, truth.noise_spread)) < 4.0);
    CHECK(std::abs(off(fit.drift, truth.drift)) < 4.0);
    CHECK(fit.noise.error < 0.1);
    CHECK(fit.noise_spread.error < 0.1);
    CHECK(fit.drift.error < 0.1);
    for (const fit::TableMoment& one : fit.moments) CHECK(one.fit == Approx(one.table).margin(1e-5));
    CHECK(std::abs(fit.worst().fit - fit.worst().table) < 0.02);
    // Wrong models that it must exclude: a draft whose error is the same everywhere, depths that are alike.
    CHECK(off(fit.noise_spread, 0.7) > 4.0);
    CHECK(off(fit.drift, 0.0) > 4.0);
  }
}

TEST_CASE(
    "fit_table uses every rank of the first depth and leaves parameters at their defaults that the table does not determine") {
  using Table = std::vector<std::vector<double>>;
  const auto fitted = [](const Table& table) { return fit::fit_table({table, {}, ""}); };
  const fit::TableFit chain = fitted({{0.6}});
  CHECK_FALSE(chain.noise_spread.fitted);
  CHECK(chain.noise_spread.value == 0.7);
  CHECK_FALSE(chain.drift.fitted);
  CHECK(chain.figures.at(0).role == fit::FigureRole::fitted);
  CHECK_THAT(chain.warning(), Catch::Contains("does not determine"));
  CHECK_THAT(chain.yaml(), Catch::Contains("default, not determined by the table") && !Catch::Contains("tree_dynamic, depth"));
  // Mutant: the fit ignores ranks, which would leave both at the chain's spread.
  const fit::TableFit good = fitted({{0.6, 0.15, 0.07}});
  const fit::TableFit lost = fitted({{0.6, 0.06, 0.02}});
  CHECK(good.noise_spread.value < chain.noise_spread.value);
  CHECK(lost.noise_spread.value > chain.noise_spread.value + 0.5);
  CHECK_THAT(good.yaml(), Catch::Contains("{kind: tree_dynamic, depth: 4"));
  CHECK(good.warning().empty());
  // Mutant: the fit ignores depths.
  CHECK(fitted({{0.6}, {0.5}}).drift.value > 0.3);
  // Drift cannot make rates rise with depth: it stays at its bound, and the gap is reported.
  const fit::TableFit rising = fitted({{0.6}, {0.7}});
  CHECK(rising.drift.value == 0.0);
  CHECK(std::abs(rising.worst().fit - rising.worst().table) > 0.09);
  // Equal depths are printed as one line.
  const fit::TableFit alike = fitted({{0.6}, {0.6}, {0.6}});
  CHECK(alike.figures.size() == 2);
  CHECK(alike.figures.back().last == 3);
}

namespace {

// Tokens per round of a chain whose drafts are drawn, on the pair that was fitted. Sigma over the temperature is all that counts.
double drawn_tokens(const fit::TableFit& fit, std::size_t length) {
  const double unit = 8.0 / fit.sigma.value;
  const fit::RankShares& shares = fit::rank_shares({fit.record.kind.temperature * unit, false}, 1);
  const fit::TableValues values{fit.noise.value * unit, fit.noise_spread.value, fit.drift.value * unit};
  double tokens = 1.0;
  double reached = 1.0;
  for (std::size_t depth = 0; depth < length; ++depth) tokens += reached *= shares.at(values, depth, 1)[0];
  return tokens;
}

}  // namespace

TEST_CASE("fit_table uses the target's probability of chosen drafts above temperature 0", "[fit][stat]") {
  const fit::RankKind chosen{1.0, true};
  // A vLLM log's rates .78, .60 and .45: 2.83 tokens per round. Mutant: taken for the overlap of drawn drafts, which leaves the
  // target's entropy unchanged (a chain of likeliest tokens then emitted 2.22).
  const fit::TableFit log = fit::fit_table({{{0.78}, {0.60 / 0.78}, {0.45 / 0.60}}, chosen, ""});
  CHECK(log.out_of_reach().empty());
  CHECK(log.sigma.fitted);
  CHECK(log.sigma.value > 12.0);
  CHECK(log.noise.value == fit::kSurestNoise);
  CHECK(log.moments.back().fit == Approx(2.83).margin(1e-4));
  CHECK(drawn_tokens(log, 3) > 3.0);
  CHECK(drawn_tokens(log, 3) < 3.5);
  CHECK_THAT(log.yaml(), Catch::Contains("draft_length: 4, selection: argmax") && !Catch::Contains("verifier: block"));
  CHECK_THAT(log.warning(), Catch::Contains("rankings of drawn drafts"));
  // Rates that no draft of a target of sigma 8 reaches. Mutant: a noise at the end of its search, .02, whose drawn chain emits
  // 3.97.
  const fit::TableFit sure = fit::fit_table({{{0.84}, {0.81}, {0.60}}, chosen, ""});
  CHECK(sure.out_of_reach().empty());
  CHECK(sure.moments.front().fit == Approx(0.84).margin(1e-4));
  CHECK(drawn_tokens(sure, 3) < 3.5);
  // Rates that no target gives are reported as out of reach, with the nearest ones.
  CHECK_THAT(fit::fit_table({{{0.9995}}, chosen, ""}).out_of_reach(),
             Catch::StartsWith("rank 1 at depth 1 is 0.9995 in the table, and at most 0.99"));
  // If a sigma of 8 allows the draft, sigma stays at 8.
  const fit::TableFit open = fit::fit_table({{{0.5}, {0.45}}, chosen, ""});
  CHECK_FALSE(open.sigma.fitted);
  CHECK(open.sigma.value == 8.0);
  CHECK(open.noise.value > fit::kSurestNoise);
  // Sigma is recovered within its standard error, on other contexts.
  const fit::RankShares& shares = fit::rank_shares(chosen, 1, 7);
  const fit::TableValues truth{fit::kSurestNoise, 0.7, 0.0, 16.0};
  const fit::TableFit back = fit::fit_table({{shares.at(truth, 0, 1)}, chosen, ""});
  INFO(back.sigma.value);
  CHECK(std::abs(off(back.sigma, truth.sigma)) < 4.0);
  CHECK(back.sigma.error < 0.5);
  CHECK(off(back.sigma, 14.0) > 4.0);
  // An interpolated sigma gives the result of contexts at its own temperature.
  const fit::RankShares& colder = fit::rank_shares({8.0 / 16.0, true}, 1, 7);
  CHECK(shares.at(truth, 0, 1)[0] == Approx(colder.at({0.4, 0.7, 0.0}, 0, 1)[0]).margin(2e-4));
}

TEST_CASE("fit_table also fits the persistence if rates rise with depth", "[fit][stat]") {
  // vllm-project/vllm 48892's MTP layer at draft length 8 and temperature 0: 4.50 tokens per round. Mutant: independent
  // positions; a chain of 8 then emits 3.83.
  const std::vector<double> rates = {0.7617, 0.6158, 0.5125, 0.4243, 0.3640, 0.3094, 0.2722, 0.2365};
  std::vector<std::vector<double>> table;
  for (std::size_t depth = 0; depth < rates.size(); ++depth)
    table.push_back({rates[depth] / (depth > 0 ? rates[depth - 1] : 1.0)});
  const fit::TableFit mtp = fit::fit_table({table, {}, ""});
  INFO(mtp.yaml());
  CHECK(mtp.persistence.fitted);
  CHECK(mtp.noise_spread.fitted);
  CHECK(mtp.persistence.value > 0.5);
  CHECK(mtp.persistence.value < 0.8);
  CHECK(mtp.noise_spread.value > 1.4);
  CHECK_FALSE(mtp.drift.fitted);
  CHECK(mtp.moments.back().fit == Approx(4.4964).margin(1e-3));
  CHECK(std::abs(mtp.worst().fit - mtp.worst().table) < 0.02);
  CHECK(mtp.out_of_reach().empty());
  CHECK_THAT(mtp.yaml(), Catch::Contains("context: {process: text, persistence: 0.6"));
  // It was not fitted to this value: the chain of 1, which accepted .8339 there, since fewer of its rounds begin where a draft
  // failed.
  const fit::StretchRates stretches =
      fit::rank_shares({}, 1).by_stretch({mtp.noise.value, mtp.noise_spread.value, 0.0, mtp.sigma.value, 0.0}, 0);
  CHECK(fit::rates_along_text({stretches}, mtp.persistence.value)[0] == Approx(0.8339).margin(0.035));
  // The stretches' mean is that of all positions, and without memory the acceptance is the same at every depth.
  const double mean = fit::rank_shares({}, 1).at({mtp.noise.value, mtp.noise_spread.value}, 0, 1)[0];
  CHECK((stretches[0] + stretches[1] + stretches[2] + stretches[3]) / 4.0 == Approx(mean).epsilon(1e-6));
  for (const double rate : fit::rates_along_text(std::vector<fit::StretchRates>(5, stretches), 0.0))
    CHECK(rate == Approx(mean).epsilon(1e-6));
  // Parameters of a generated table are recovered on other contexts.
  const fit::RankShares& shares = fit::rank_shares({}, 1, 7);
  const std::vector<double> made =
      fit::rates_along_text(std::vector<fit::StretchRates>(6, shares.by_stretch({0.6, 1.5}, 0)), 0.7);
  table.clear();
  for (const double rate : made) table.push_back({rate});
  const fit::TableFit back = fit::fit_table({table, {}, ""});
  INFO(back.persistence.value << " " << back.persistence.error << " " << back.noise_spread.value);
  CHECK(std::abs(off(back.persistence, 0.7)) < 4.0);
  CHECK(std::abs(off(back.noise_spread, 1.5)) < 4.0);
  CHECK(off(back.persistence, 0.5) > 4.0);
  // Three depths determine only the persistence, two determine nothing; missing parameters are reported.
  const fit::TableFit three = fit::fit_table({{{0.7}, {0.71}, {0.715}}, {}, ""});
  CHECK(three.persistence.fitted);
  CHECK_FALSE(three.noise_spread.fitted);
  CHECK(three.moments.back().fit == Approx(three.moments.back().table).margin(1e-4));
  const fit::TableFit two = fit::fit_table({{{0.6}, {0.7}}, {}, ""});
  CHECK_FALSE(two.persistence.fitted);
  CHECK_THAT(two.out_of_reach(), Catch::StartsWith("chain of 2, tokens per round is 2.0200 in the table, and at most 1.9"));
  CHECK_FALSE(two.fails());
  CHECK(fit::fit_table({{{0.266}, {0.876}, {0.927}, {0.94}}, {}, ""}).fails());
}

TEST_CASE("fit_table reproduces EAGLE's heads by depth") {
  // From the acceptance of Vicuna-7B in EAGLE's Table 2. docs/results/language.md has value 1.02 and drift .48 of a draft with a
  // spread of 1 and a target of lower entropy; here the spread is the default and sigma 8.
  const fit::TableFit fit = fit::fit_table({{{0.79}, {0.74}, {0.72}, {0.73}, {0.67}}, {}, ""});
  INFO(fit.yaml());
  CHECK(fit.noise.value > 0.6);
  CHECK(fit.noise.value < 1.5);
  CHECK(fit.drift.value > 0.25);
  CHECK(fit.drift.value < 0.8);
  for (const fit::TableFigure& one : fit.figures) CHECK(one.fit == Approx(one.table).margin(0.04));
  CHECK(fit.worst().depth == 4);  // which lies above both its neighbours
  // Values that scripts/results/along_texts.py found by running the simulator with a head whose logits are divided by 1.7, under
  // a sigma of 12 (results/language/along_texts.csv): at temperature 0 the same as here with everything in units of sigma, and
  // the drift, which is added after the division, 1.7 times as large. Its 256 contexts and eight seeds leave .007 to chance.
  constexpr double kUnits = 8.0 / 12.0;
  const fit::RankShares& shares = fit::rank_shares({}, 1);
  const double simulated[] = {0.7918, 0.7502, 0.7205, 0.6937, 0.6639};
  for (std::size_t depth = 0; depth < 5; ++depth)
    CHECK(shares.at({1.016 * kUnits, 1.0, 0.483 * 1.7 * kUnits}, depth, 1)[0] == Approx(simulated[depth]).margin(0.02));
}

}  // namespace specsim::table_fit_test
