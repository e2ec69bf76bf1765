#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/bounds.h"
#include "sim/rounds/theory/lossy.h"
#include "tests/support/best_trees.h"
#include "tests/support/random_automata.h"

namespace specsim::theory_lossy_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

using Distribution = std::vector<double>;

// Every branch: draw, coin, final token.
Distribution distribution_by_branches(const Distribution& acceptance, const Distribution& drafted,
                                      const Distribution& otherwise) {
  Distribution distribution(drafted.size(), 0.0);
  for (std::size_t x = 0; x < drafted.size(); ++x) {
    distribution[x] += drafted[x] * acceptance[x];
    for (std::size_t y = 0; y < drafted.size(); ++y) distribution[y] += drafted[x] * (1.0 - acceptance[x]) * otherwise[y];
  }
  return distribution;
}

}  // namespace

TEST_CASE("lossy rules: the emitted distribution is that of every branch, its bias the distance", "[theory][lossy]") {
  Numbers numbers(12);
  for (int trial = 0; trial < 200; ++trial) {
    const int vocab = 2 + trial % 5;
    const Distribution target = numbers.distribution(vocab, trial % 2 == 0);
    const Distribution draft = numbers.distribution(vocab, trial % 3 == 0);
    const double lenience = 0.2 + 0.8 * numbers.next();
    const auto agree = [&](const Distribution& acceptance, const Distribution& otherwise) {
      const Judgement judgement = judge_accepting(acceptance, draft, otherwise);
      const Distribution distribution = distribution_by_branches(acceptance, draft, otherwise);
      double distance = 0.0;
      for (std::size_t x = 0; x < distribution.size(); ++x) {
        REQUIRE(std::abs(emitted_distribution(judgement)[x] - distribution[x]) < 1e-14);
        distance += 0.5 * std::abs(distribution[x] - target[x]);
      }
      REQUIRE(std::abs(bias(judgement, target) - distance) < 1e-14);
    };
    agree(typical_acceptance(target, 0.3, 0.09), target);
    agree(top_k_acceptance(target, 1 + trial % 3), target);
    agree(lenience_acceptance(target, draft, lenience), residual_distribution(target, draft));

    // Lenience: no token above target / lenience, acceptance never below the overlap, bias at most the mass it adds.
    const Judgement lenient =
        judge_accepting(lenience_acceptance(target, draft, lenience), draft, residual_distribution(target, draft));
    for (std::size_t x = 0; x < target.size(); ++x) REQUIRE(emitted_distribution(lenient)[x] <= target[x] / lenience + 1e-14);
    REQUIRE(lenient.alpha() >= overlap(target, draft) - 1e-14);
    REQUIRE(bias(lenient, target) <= total_variation(target, draft) + 1e-14);
    // At 1 it is the token rule, and lossless.
    const Judgement strict =
        judge_accepting(lenience_acceptance(target, draft, 1.0), draft, residual_distribution(target, draft));
    REQUIRE(std::abs(strict.alpha() - overlap(target, draft)) < 1e-14);
    REQUIRE(bias(strict, target) < 1e-14);
  }
}

TEST_CASE("lossy rules: figures by hand", "[theory][lossy]") {
  const Distribution target = {0.5, 0.3, 0.2};
  const Distribution draft = {0.2, 0.2, 0.6};
  // Entropy 1.0297 nats: e^-H = .3571, so delta .7 puts the threshold at .25, epsilon .1 below it.
  CHECK(typical_acceptance(target, 1.0, 0.7) == Distribution{1.0, 1.0, 0.0});
  CHECK(typical_acceptance(target, 0.1, 0.7) == Distribution{1.0, 1.0, 1.0});
  CHECK(typical_acceptance(target, 1.0, 1.0) == Distribution{1.0, 0.0, 0.0});
  CHECK(typical_acceptance(target, 0.5, 9.0) == Distribution{0.0, 0.0, 0.0});  // strictly above
  CHECK(top_k_acceptance({target}, 2) == Distribution{1.0, 1.0, 0.0});
  CHECK(top_k_acceptance(Distribution{0.4, 0.4, 0.2}, 1) == Distribution{1.0, 0.0, 0.0});
  // Top-2 accepts .4; the rest, .6, is drawn from the target: (.2 + .3, .2 + .18, .12).
  const Judgement top = judge_accepting(top_k_acceptance(target, 2), draft, target);
  CHECK(std::abs(top.alpha() - 0.4) < 1e-15);
  CHECK(std::abs(emitted_distribution(top)[1] - 0.38) < 1e-15);
  CHECK(std::abs(bias(top, target) - 0.08) < 1e-15);
  // Lenience 1/2: acceptance min(1, 2 target / draft) = (1, 1, 2/3); residual from target - draft = (.3, .1, 0).
  const Judgement half = judge_accepting(lenience_acceptance(target, draft, 0.5), draft, residual_distribution(target, draft));
  CHECK(std::abs(half.alpha() - 0.8) < 1e-15);
  CHECK(std::abs(emitted_distribution(half)[0] - 0.35) < 1e-15);
  CHECK(std::abs(bias(half, target) - 0.2) < 1e-15);
}

TEST_CASE("lossy rules refuse parameters out of range", "[theory][lossy]") {
  const Distribution even = {0.5, 0.5};
  CHECK_THROWS_AS(typical_acceptance(even, -0.1, 0.3), InvariantBroken);
  CHECK_THROWS_AS(lenience_acceptance(even, even, 0.0), InvariantBroken);
  CHECK_THROWS_AS(lenience_acceptance(even, even, 1.5), InvariantBroken);
  CHECK_THROWS_AS(top_k_acceptance(even, 0), InvariantBroken);
  CHECK_THROWS_AS(judge_accepting(Distribution{2.0, 0.0}, even, even), InvariantBroken);
  CHECK_THROWS_AS(judge_accepting(Distribution{1.0}, even, even), InvariantBroken);
}

TEST_CASE("the longest of independent n-grams is Lookahead's formula", "[theory][lossy]") {
  // A single token is right; a chain's tokens are right with alpha each, and with this threshold typical acceptance accepts only
  // right ones.
  const double alpha = 0.6;
  Automaton automaton;
  automaton.vocab = 2;
  automaton.states = 1;
  automaton.next = {0, 0};
  automaton.target = {{1.0, 0.0}};
  automaton.draft = {{{alpha, 1.0 - alpha}}};
  for (const int candidates : {1, 3, 15}) {
    const RoundDistribution distribution =
        typical_kernel(automaton, uniform_tree({candidates, 1, 1}), TreeSampling::with_replacement, 0.5, 1.0).distribution(0);
    const RoundDistribution formula = lookahead_distribution(alpha, 3, candidates);
    for (int i = 1; i <= 3; ++i) CHECK(std::abs(distribution.tail(i) - formula.tail(i)) < 1e-14);
  }
}

}  // namespace specsim::theory_lossy_test
