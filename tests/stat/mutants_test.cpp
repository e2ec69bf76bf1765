// The statistical checks of `specsim check` on the built-in code, and on every mutant that they must reject.
#include "tests/support/mutants.h"
#include "sim/experiments/judge/agreement.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>

namespace specsim::mutants_test {

namespace {

// The level at which a cell is judged in a family of the CI grid's size.
const double kLevel = judge::check_level(750);
constexpr std::uint64_t kRounds = 12'000'000;

spec::Cell ten_tokens() {  // claim M3's distributions: chi2(draft || target) = .108
  return tests::experiment_of(
             "{experiment: mutants, seed: 20260301, rounds: 12000000, pair: {vocab: 10, "
             "target: {family: explicit, probabilities: [.3, .25, .15, .1, .08, .05, .03, .02, .01, .01]}, "
             "draft: {family: explicit, probabilities: [.2, .2, .2, .15, .1, .05, .04, .03, .02, .01]}}, "
             "decode: {drafter: {kind: chain, draft_length: 3}}}")
      .cells.at(0);
}

spec::Cell markov_tokens() {
  return tests::experiment_of(
             "{experiment: mutants, seed: 20260302, rounds: 12000000, pair: {vocab: 6, target: {family: dirichlet, "
             "concentration: 1}, "
             "draft: {from: target, transform: logit_noise, value: .8}}, context: {process: markov, order: 1}, "
             "decode: {drafter: {kind: chain, draft_length: 3}}}")
      .cells.at(0);
}

judge::Agreement judged(const spec::Cell& cell, const tests::Mutant& mutant) {
  const tests::ReadyCell ready(cell);
  const decode::Counts counts = tests::run_mutant(cell, mutant, kRounds);
  const judge::Prediction prediction = judge::predict_exact(cell, ready.facts(), kRounds);
  return judge::judge_cell(cell, ready.facts(), prediction, counts, kLevel);
}

const tests::Mutant& shipped() {
  static const tests::Mutant none{
      "none", [] { return std::make_unique<tests::TokenLikeRule>(); }, {}, tests::Figure::scripted, {}};
  return none;
}

}  // namespace

TEST_CASE("the built-in rule passes every check that is applied to its mutants") {
  for (const spec::Cell& cell : {ten_tokens(), markov_tokens()}) {
    const judge::Agreement agreement = judged(cell, shipped());
    INFO(cell.experiment << " z " << agreement.z_tokens_per_round << " accepted " << agreement.p_accepted_distribution
                         << " output " << agreement.p_output_distribution);
    CHECK(agreement.p_tokens_per_round > 1e-3);
    CHECK(agreement.p_accepted_distribution > 1e-3);
    CHECK(agreement.p_output_distribution > 1e-3);
    CHECK(agreement.smallest_leak < 0.01);
  }
}

TEST_CASE("every mutant is rejected by a check of check, by name") {
  for (const tests::Mutant& mutant : tests::mutants()) {
    DYNAMIC_SECTION(mutant.name) {
      const spec::Cell cell = mutant.name == "goes on after a rejection" ? markov_tokens() : ten_tokens();
      const judge::Agreement agreement = judged(cell, mutant);
      INFO("p of tokens " << agreement.p_tokens_per_round << " accepted " << agreement.p_accepted_distribution << " output "
                          << agreement.p_output_distribution);
      switch (mutant.caught_by) {
        case tests::Figure::output_distribution:
        case tests::Figure::joint_distribution:  // over a whole stream, a wrong bonus token shows in the single tokens as well
          CHECK(agreement.p_output_distribution < kLevel);
          break;
        case tests::Figure::accepted_distribution:
          CHECK(agreement.p_accepted_distribution < kLevel);
          break;
        case tests::Figure::emitted_distribution:
          CHECK(agreement.p_tokens_per_round < kLevel);
          break;
        case tests::Figure::scripted:  // wrong for one in 2^53 values of the random bits: no sample shows it, but tests/exact
                                       // does
          CHECK(agreement.p_output_distribution > kLevel);
          CHECK(agreement.p_accepted_distribution > kLevel);
          break;
      }
      // Acceptance figures alone never show a lost distribution.
      if (mutant.name == "resamples from the target" || mutant.name == "residual from abs(target - draft)")
        CHECK(agreement.p_accepted_distribution > kLevel);
    }
  }
}

namespace {

// Always the first token that the residual allows: acceptance figures cannot see it, nor can a test that only asks on which
// side of the draft a token lies.
class FirstResidualTokenRule final : public tests::TokenLikeRule {
 public:
  void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
    TokenLikeRule::rejected(distributions, weights);
    bool found = false;
    for (double& weight : weights) {
      if (found || !(weight > 0.0)) weight = 0.0;
      found = found || weight > 0.0;
    }
  }
};

}  // namespace

TEST_CASE("fresh distributions have their own loop: wrong rules are rejected there too") {
  const spec::Cell fresh =
      tests::experiment_of(
          "{experiment: fresh, seed: 20260303, rounds: 200000, pair: {vocab: 8, target: {family: uniform_logits, range: 4}, "
          "draft: {from: target, transform: logit_noise, value: 1}}, context: {process: iid, fresh: true}, decode: {drafter: "
          "{kind: chain, draft_length: 3}}}")
          .cells.at(0);
  const auto p_of = [](const tests::ReadyCell& cell) {
    const decode::Simulator simulator = cell.simulator();
    decode::Counts counts = simulator.empty_counts();
    for (std::uint64_t i = 0; i * simulator.chunk_size() < 200000; ++i) simulator.run(i, 200000, counts);
    const judge::Prediction prediction = judge::predict_exact(cell.cell(), cell.facts(), 200000);
    return judge::judge_cell(cell.cell(), cell.facts(), prediction, counts, kLevel);
  };
  const judge::Agreement correct = p_of(tests::ReadyCell(fresh));
  CHECK(correct.p_output_distribution > 1e-3);
  CHECK(correct.p_tokens_per_round > 1e-3);
  CHECK(p_of({fresh, tests::LeakRule(1.0)}).p_output_distribution < kLevel);
  CHECK(p_of({fresh, tests::ResampleTargetRule()}).p_output_distribution < kLevel);
  CHECK(p_of({fresh, tests::AbsoluteResidualRule()}).p_output_distribution < kLevel);
  CHECK(p_of({fresh, FirstResidualTokenRule()}).p_output_distribution < kLevel);
  CHECK(p_of({fresh, tests::InvertedRatioRule()}).p_tokens_per_round < kLevel);
}

TEST_CASE("texts: theory of another persistence, of requests that are alike, and of a draft that does not tire is rejected") {
  const auto texts = [](const char* context) {
    return std::string(
               "{experiment: texts, seed: 20261127, rounds: 12000000, pair: {vocab: 40, target: {family: normal_logits, sigma: "
               "6, "
               "spread: .4}, draft: {from: target, transform: logit_noise, value: 1.4, spread: .8}}, context: {process: text, ") +
           context + "}, decode: {drafter: {kind: chain, draft_length: 4}}}";
  };
  const tests::ReadyCell ready(texts("persistence: .7, between_requests: .2, drift: .3"));
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
  const auto p_by_theory_of = [&](const char* context) {
    const tests::ReadyCell other(texts(context));
    const judge::Prediction prediction = judge::predict_exact(other.cell(), other.facts(), kRounds);
    return judge::judge_cell(ready.cell(), ready.facts(), prediction, counts, kLevel).p_tokens_per_round;
  };
  CHECK(p_by_theory_of("persistence: .7, between_requests: .2, drift: .3") > 1e-3);
  CHECK(p_by_theory_of("persistence: .5, between_requests: .2, drift: .3") < kLevel);
  CHECK(p_by_theory_of("persistence: .7, drift: .3") < kLevel);
  CHECK(p_by_theory_of("persistence: .7, between_requests: .2") < kLevel);

  // Requests of equally many tokens differ from requests of equally many rounds, which favour the easy ones.
  const tests::ReadyCell ending(texts("persistence: .7, between_requests: .2, request_tokens: 50"));
  const decode::Simulator requests = ending.simulator();
  decode::Counts of_requests = requests.empty_counts();
  const std::uint64_t work = ending.cell().work();
  for (std::uint64_t i = 0; i * requests.chunk_size() < work; ++i) requests.run(i, work, of_requests);
  for (const bool own : {true, false}) {
    const tests::ReadyCell other(
        texts(own ? "persistence: .7, between_requests: .2, request_tokens: 50" : "persistence: .7, between_requests: .2"));
    const judge::Prediction prediction = judge::predict_exact(other.cell(), other.facts(), own ? work : kRounds);
    const double p = judge::judge_cell(ending.cell(), ending.facts(), prediction, of_requests, kLevel).p_tokens_per_round;
    CHECK(own == (p > 1e-3));
    CHECK(own != (p < kLevel));
  }
}

TEST_CASE("p-values of a correct simulation are spread evenly, in every kind of context") {
  // The number of p-values below 1/10 among 1500 seeds is binomial: mean 150, standard deviation 11.6; the bounds are five of
  // them. A standard error that is 10 % too small moves the count to about 205. The spread of z must also be within five standard
  // deviations.
  constexpr int kSeeds = 1500;
  const char* const contexts[] = {
      "{process: fixed}",
      "{process: iid, pool: 5}",
      "{process: markov, order: 1}",
      "{process: regimes, states: [{draft: {family: uniform}}, {draft: {from: target, transform: temperature, value: 1.2}}], "
      "transition: [[.9, .1], [.2, .8]]}",
      "{process: by_depth, drafts: [{from: target, transform: temperature, value: 1.5}, {family: uniform}]}",
      "{process: requests, request_tokens: 60, types: [{draft: {family: uniform}}, {draft: {from: target, transform: "
      "temperature, value: 1.2}}]}"};
  for (const char* const context : contexts) {
    DYNAMIC_SECTION(context) {
      int low_tokens = 0;
      int low_accepted = 0;
      int low_output = 0;
      double squares = 0.0;
      for (int seed = 0; seed < kSeeds; ++seed) {
        const tests::ReadyCell ready("{experiment: uniform_p, seed: " + std::to_string(1000 + seed) +
                                     ", rounds: 16384, pair: {vocab: 6, target: {family: zipf, exponent: 1}, draft: {from: "
                                     "target, transform: temperature, "
                                     "value: 2}}, context: " +
                                     context + ", decode: {drafter: {kind: chain, draft_length: 3}}}");
        const decode::Simulator simulator = ready.simulator();
        decode::Counts counts = simulator.empty_counts();
        const std::uint64_t work = ready.cell().work();
        for (std::uint64_t i = 0; i * simulator.chunk_size() < work; ++i) simulator.run(i, work, counts);
        const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), work);
        const judge::Agreement agreement = judge::judge_cell(ready.cell(), ready.facts(), prediction, counts, kLevel);
        low_tokens += agreement.p_tokens_per_round < 0.1 ? 1 : 0;
        low_accepted += agreement.p_accepted_distribution < 0.1 ? 1 : 0;
        low_output += agreement.p_output_distribution < 0.1 ? 1 : 0;
        squares += agreement.z_tokens_per_round * agreement.z_tokens_per_round;
      }
      CHECK(low_tokens > 92);
      CHECK(low_tokens < 208);
      CHECK(low_accepted > 92);
      CHECK(low_accepted < 208);
      CHECK(low_output > 60);  // its parts are tested on one sample, so Sidak's bound is conservative
      CHECK(low_output < 208);
      CHECK(squares / kSeeds == Approx(1.0).margin(5.0 * std::sqrt(2.0 / kSeeds)));
    }
  }
}

TEST_CASE("equal distributions agree at every seed: rounding must not carry alpha beyond 1") {
  for (int seed = 0; seed < 200; ++seed) {
    const tests::ReadyCell ready("{experiment: equal, seed: " + std::to_string(seed) +
                                 ", rounds: 256, pair: {vocab: 37, target: {family: dirichlet, concentration: 1}, draft: {from: "
                                 "target, transform: mix_noise, "
                                 "value: 0}}, decode: {drafter: {kind: chain, draft_length: 3}}}");
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), 256);
    CHECK(prediction.tokens_per_round == Approx(4.0).margin(1e-9));
  }
}

TEST_CASE("rare classes raise no false alarms") {
  // A class with one expected token in a hundred runs that a wrong draft would fill: the normal limit rejects one run in fifty.
  int rejected = 0;
  const double level = 1e-6;
  for (int seed = 0; seed < 1000; ++seed) {
    const tests::ReadyCell ready("{experiment: rare, seed: " + std::to_string(seed) +
                                 ", rounds: 10000, pair: {vocab: 2, target: {family: explicit, probabilities: [.999999, "
                                 ".000001]}, draft: {family: uniform}}, "
                                 "decode: {drafter: {kind: chain, draft_length: 1}}}");
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    simulator.run(0, 10000, counts);
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), 10000);
    rejected += judge::judge_cell(ready.cell(), ready.facts(), prediction, counts, level).p_output_distribution < level ? 1 : 0;
  }
  CHECK(rejected == 0);
}

}  // namespace specsim::mutants_test
