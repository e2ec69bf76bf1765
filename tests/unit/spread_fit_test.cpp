// The fit of spread-out normal logits to a record: known parameters are recovered within the stated errors.
#include "sim/experiments/fit/spread_fit.h"
#include "tests/support/cells.h"
#include "tests/unit/contexts.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

namespace specsim::spread_fit_test {

namespace {

constexpr int kVocab = 200;

// 80 requests of 25 positions of the family itself, with distributions.
fit::SpreadRecord recorded(double sigma, double sigma_spread, double noise, double noise_spread, int seed) {
  const spec::Cell cell =
      tests::experiment_of(
          fmt::format(
              "{{experiment: record, seed: {}, rounds: 1000, context: {{process: iid, pool: 2000}}, pair: {{vocab: {}, target: "
              "{{family: "
              "normal_logits, sigma: {}, spread: {}}}, draft: {{from: target, transform: logit_noise, value: {}, spread: {}}}}}, "
              "decode: {{drafter: {{kind: chain, draft_length: 2}}, verifier: token}}}}",
              seed, kVocab, sigma, sigma_spread, noise, noise_spread))
          .cells.at(0);
  fit::SpreadRecord record;
  record.vocab = kVocab;
  constexpr std::size_t kPositions = 25;
  std::size_t position = 0;
  decode::prepare(spec::plan_of(cell),
                  [&](int, int depth, const verify::PositionDistributions& at, const decode::OutputClasses&) {
                    if (depth > 0) return;
                    if (position++ % kPositions == 0) {
                      record.entropy.emplace_back();
                      record.overlap.emplace_back();
                    }
                    double entropy = 0.0;
                    double overlap = 0.0;
                    for (std::size_t x = 0; x < at.target.size(); ++x) {
                      if (at.target[x] > 0.0) entropy -= at.target[x] * std::log(at.target[x]);
                      overlap += std::min(at.target[x], at.drafted[x]);
                    }
                    record.entropy.back().push_back(entropy);
                    record.overlap.back().push_back(overlap);
                  });
  return record;
}

// 120 requests of 50 consecutive positions as in process `text`, each with its own distributions.
fit::SpreadRecord recorded_texts(double persistence, double between_requests, int seed) {
  const spec::Cell cell =
      tests::experiment_of(fmt::format("{{experiment: record, seed: {}, rounds: 1000, context: {{process: text, "
                                       "persistence: {}, between_requests: {}}}, pair: {{vocab: {}, target: "
                                       "{{family: normal_logits, sigma: 8, spread: 0.4}}, draft: {{from: "
                                       "target, transform: logit_noise, value: 1.2, spread: 1}}}}, decode: "
                                       "{{drafter: {{kind: chain, draft_length: 2}}, verifier: token}}}}",
                                       seed, persistence, between_requests, kVocab))
          .cells.at(0);
  fit::SpreadRecord record;
  record.vocab = kVocab;
  record.overlap.resize(120);
  std::vector<double> target(kVocab);
  std::vector<double> draft(kVocab);
  const rng::Key key = spec::distribution_key(cell);
  tests::walk(*cell.contexts->process, spec::draw_key(cell), 0, 50,
              [&](std::uint32_t lane, std::uint32_t position, std::uint32_t context) {
                if (lane >= record.overlap.size()) return;
                families::DistributionAddress address = cell.contexts->address(key, context);
                address.context = 1000 + std::uint64_t{lane} * 50 + position;
                cell.contexts->pair(0).draw_target(address, target);
                cell.contexts->pair(0).draw_draft(address, 0, target, draft);
                double overlap = 0.0;
                for (std::size_t x = 0; x < target.size(); ++x) overlap += std::min(target[x], draft[x]);
                record.overlap[lane].push_back(overlap);
              });
  return record;
}

double off(const fit::SpreadParameter& parameter, double truth) { return (parameter.value - truth) / parameter.error; }

}  // namespace

TEST_CASE("fit_spread recovers known parameters within its standard errors", "[fit][stat]") {
  const double truths[][4] = {{5.0, 0.4, 1.2, 0.6}, {8.0, 0.3, 2.0, 0.3}, {3.0, 0.5, 0.8, 0.9}};
  double squares = 0.0;
  int count = 0;
  int seed = 11;
  for (const auto& truth : truths) {
    for (int repeat = 0; repeat < 1; ++repeat) {
      const fit::SpreadFit fit = fit::fit_spread(recorded(truth[0], truth[1], truth[2], truth[3], ++seed));
      INFO(fit.yaml());
      CHECK(fit.warning().empty());
      CHECK_THAT(fit.yaml(), Catch::Contains("{kind: tree_dynamic, depth: 4") && !Catch::Contains("Omitted"));
      const double z[] = {off(fit.sigma, truth[0]), off(fit.sigma_spread, truth[1]), off(fit.noise, truth[2]),
                          off(fit.noise_spread, truth[3])};
      for (const double one : z) {
        CHECK(std::abs(one) < 4.0);
        squares += one * one;
        ++count;
      }
      // The stated errors are small: from 2000 positions the scales are known to a tenth.
      CHECK(fit.sigma.error < 0.1 * truth[0]);
      CHECK(fit.noise.error < 0.15 * truth[2]);
      for (std::size_t i = 0; i < 4; ++i) CHECK(fit.moments[i].fitted == Approx(fit.moments[i].recorded).epsilon(1e-4));
      // Independent positions.
      CHECK(off(fit.persistence, 0.0) < 4.0);
      CHECK(off(fit.between_requests, 0.0) < 4.0);
      // A wrong value that it must exclude: noise a third larger.
      CHECK(std::abs(off(fit.noise, truth[2] * 1.5)) > 3.0);
    }
  }
  // All errors together reveal errors that are much too small. Of 12 deviates the mean square is above 2.5 by chance in 3 of 1000
  // fits, so errors 1.5 times too small still pass, and twice too small do not; each single check of 4.0 above has less power.
  CHECK(squares / count < 2.5);
}

TEST_CASE("fit_spread recovers what goes on along a text within its standard errors", "[fit][stat]") {
  double squares = 0.0;
  int count = 0;
  int seed = 40;
  const double truths[][2] = {{0.5, 0.3}, {0.8, 0.1}, {0.4, 0.5}, {0.5, 0.0}, {0.95, 0.0}, {0.95, 0.2}};
  for (const auto& truth : truths) {
    const fit::SpreadFit fit = fit::fit_spread(recorded_texts(truth[0], truth[1], ++seed));
    INFO(fit.yaml());
    for (const double one : {off(fit.persistence, truth[0]), off(fit.between_requests, truth[1])}) {
      CHECK(std::abs(one) < 4.0);
      squares += one * one;
      ++count;
    }
    // If stretches are nearly as long as requests the two can hardly be distinguished, and the errors reflect this.
    if (truth[0] > 0.9) continue;
    CHECK(fit.persistence.error < 0.2);
    CHECK(fit.between_requests.error < 0.15);
    // Wrong models that it must exclude: independent positions, and independent requests.
    CHECK(off(fit.persistence, 0.0) > 2.0);
    if (truth[1] > 0.0) CHECK(off(fit.between_requests, 0.0) > 1.5);
  }
  // Above 3 by chance in 3 of 10,000 fits: errors 1.7 times too small may pass.
  CHECK(squares / count < 3.0);
}

TEST_CASE("fit_spread: overlaps alone do not determine the target, and outcomes neither it nor the draft's spread") {
  fit::SpreadRecord record = recorded(8.0, 0.4, 1.5, 0.7, 5);
  record.entropy.clear();
  const fit::SpreadFit overlaps = fit::fit_spread(record);
  CHECK_FALSE(overlaps.sigma.fitted);
  CHECK(overlaps.sigma.value == 8.0);
  // Trees of likeliest tokens depend on the sigma that was not recorded. Mutant: an empty warning.
  CHECK_THAT(overlaps.warning(), Catch::Contains("sigma was not recorded"));
  CHECK_THAT(overlaps.yaml(), Catch::Contains("# Omitted: trees of likeliest tokens") && !Catch::Contains("tree_dynamic, depth"));
  CHECK(std::abs(off(overlaps.noise, 1.5)) < 4.0);
  CHECK(std::abs(off(overlaps.noise_spread, 0.7)) < 4.0);
  record.outcomes = true;
  const fit::SpreadFit outcomes = fit::fit_spread(record);
  CHECK_FALSE(outcomes.noise_spread.fitted);
  CHECK(outcomes.noise_spread.value == 0.7);
  CHECK(outcomes.moments.size() == 1);
  CHECK(std::abs(off(outcomes.noise, 1.5)) < 4.0);
}

TEST_CASE("fit_spread: positions that are all alike have no spread, and one request gives no errors") {
  fit::SpreadRecord alike;
  alike.overlap = {std::vector<double>(50, 0.6)};
  const fit::SpreadFit fit = fit::fit_spread(alike);
  CHECK(fit.noise_spread.value == 0.0);
  CHECK(std::isnan(fit.noise.error));
  CHECK(fit.moments[0].fitted == Approx(0.6).epsilon(1e-3));
  CHECK_FALSE(fit.persistence.fitted);
}

}  // namespace specsim::spread_fit_test
