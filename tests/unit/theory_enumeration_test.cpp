#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/bounds.h"
#include "tests/support/acceptance_bounds.h"
#include "tests/support/enumeration.h"
#include "tests/support/modulated_rounds.h"
#include "tests/support/random_automata.h"

namespace specsim::theory_enumeration_test {

using namespace specsim::theory;
using namespace specsim::tests;

using Distribution = std::vector<double>;

TEST_CASE("known pairs: accepted under the token and block rules, target distribution restored", "[theory][enumeration]") {
  struct Known {
    Automaton automaton;
    double token;
    double block;
  };
  for (const Known& known : {Known{first_pair(), 10.0 / 9.0, 11.0 / 9.0}, Known{second_pair(), 65.0 / 64.0, 71.0 / 64.0}}) {
    const Enumeration token = enumerate(known.automaton, {Rule::token, 2, Drafting::sampled}, 5);
    const Enumeration block = enumerate(known.automaton, {Rule::block, 2, Drafting::sampled}, 5);
    CHECK(std::abs(token.accepted.mean_accepted() - known.token) < 1e-15);
    CHECK(std::abs(block.accepted.mean_accepted() - known.block) < 1e-15);
    CHECK(std::abs(token.expected_emitted - known.token - 1.0) < 1e-15);
    CHECK(token.largest_difference < 1e-15);
    CHECK(block.largest_difference < 1e-15);
    const double alpha = overlap(known.automaton.target[0], known.automaton.draft[0][0]);
    const RoundDistribution distribution = constant_alpha(alpha, 2);
    for (std::size_t j = 0; j < 3; ++j) CHECK(std::abs(distribution.accepted[j] - token.accepted.accepted[j]) < 1e-15);
  }
}

TEST_CASE("resampling from the target changes the distribution while the accepted counts stay", "[theory][enumeration]") {
  const RoundRule mutant{Rule::resample_target_mutant, 2, Drafting::sampled};
  const Enumeration first = enumerate(first_pair(), mutant, 1);
  CHECK(std::abs(first.joint[0] - 4.0 / 9.0) < 1e-15);
  CHECK(std::abs(first.joint[1] - 5.0 / 9.0) < 1e-15);
  CHECK(std::abs(first.expected_emitted - 19.0 / 9.0) < 1e-15);
  CHECK(std::abs(first.largest_difference - 1.0 / 9.0) < 1e-15);
}

TEST_CASE("lossless rules restore the joint distribution over round boundaries on random automata", "[theory][enumeration]") {
  Numbers numbers(31337);
  for (int trial = 0; trial < 120; ++trial) {
    const int vocab = 2 + trial % 3;
    const int states = 1 + trial % 4;
    const int length = trial % 4;
    const int depths = trial % 2 == 0 ? 1 : 4;
    const Automaton automaton = random_automaton(numbers, vocab, states, depths, trial % 3 == 0);
    const int tokens = vocab == 4 ? 5 : 6;
    INFO("trial " << trial << " vocab " << vocab << " states " << states << " draft_length " << length);
    for (const Drafting drafting : {Drafting::sampled, Drafting::argmax}) {
      for (const Rule rule : {Rule::plain, Rule::token, Rule::block, Rule::sample_match}) {
        const Enumeration result = enumerate(automaton, {rule, length, drafting}, tokens);
        REQUIRE(result.largest_difference < 1e-14);
        double mass = 0.0;
        for (const double share : result.accepted.accepted) mass += share;
        REQUIRE(std::abs(mass - 1.0) < 1e-14);
        REQUIRE(std::abs(result.accepted.mean_emitted() - result.expected_emitted) < 1e-14);
      }
      // Block never accepts fewer, tail by tail.
      const Enumeration token = enumerate(automaton, {Rule::token, length, drafting}, 1);
      const Enumeration block = enumerate(automaton, {Rule::block, length, drafting}, 1);
      for (int j = 0; j <= length; ++j) REQUIRE(block.accepted.tail(j) >= token.accepted.tail(j) - 1e-14);
    }
    const Automaton cold = random_automaton(numbers, vocab, states, depths, trial % 3 == 0, true);
    for (const Drafting drafting : {Drafting::sampled, Drafting::argmax}) {
      REQUIRE(enumerate(cold, {Rule::greedy, length, drafting}, tokens).largest_difference < 1e-14);
    }
  }
}

TEST_CASE("greedy and soft argmax are biased where theory predicts it", "[theory][enumeration][claims]") {
  CHECK(std::abs(enumerate(first_pair(), {Rule::greedy, 1, Drafting::sampled}, 1).joint[1] - 1.0) < 1e-15);
  Numbers numbers(8);
  for (int trial = 0; trial < 50; ++trial) {
    const Distribution target = numbers.distribution(4, trial % 2 == 0);
    const Distribution draft = numbers.distribution(4, trial % 5 == 0);
    const Automaton automaton = one_state(target, draft);
    const Enumeration result = enumerate(automaton, {Rule::soft_argmax, 2, Drafting::argmax}, 1);
    const Distribution distribution = soft_argmax_distribution(target, draft);
    double distance = 0.0;
    for (std::size_t x = 0; x < 4; ++x) {
      REQUIRE(std::abs(result.joint[x] - distribution[x]) < 1e-14);
      distance += 0.5 * std::abs(result.joint[x] - target[x]);
    }
    REQUIRE(std::abs(distance - soft_argmax_bias(target, draft)) < 1e-14);
    // A sampled draft judged by the same soft distribution is exact: the token rule.
    REQUIRE(enumerate(automaton, {Rule::token, 2, Drafting::sampled}, 3).largest_difference < 1e-14);
    // An argmax draft judged as a point mass is exact too, with alpha = target(argmax draft).
    const Enumeration point = enumerate(automaton, {Rule::token, 2, Drafting::argmax}, 3);
    REQUIRE(point.largest_difference < 1e-14);
    REQUIRE(std::abs(point.accepted.tail(1) - argmax_draft_alpha(target, draft)) < 1e-14);
    const Enumeration match = enumerate(automaton, {Rule::sample_match, 1, Drafting::sampled}, 1);
    REQUIRE(std::abs(match.accepted.tail(1) - sample_match_alpha(target, draft)) < 1e-14);
  }
  CHECK(std::abs(enumerate(first_pair(), {Rule::sample_match, 1, Drafting::sampled}, 1).accepted.tail(1) - 4.0 / 9.0) < 1e-15);
}

TEST_CASE("block: expected accepted is the sum of expected clipped products", "[theory][enumeration]") {
  Numbers numbers(12);
  for (int trial = 0; trial < 20; ++trial) {
    const Automaton automaton = random_automaton(numbers, 3, 2, 3, trial % 2 == 0);
    double expected = 0.0;
    for (int block = 0; block < 27; ++block) {
      int state = automaton.start;
      double probability = 1.0;
      double carry = 1.0;
      double sum = 0.0;
      for (int j = 0, divisor = 9; j < 3; ++j, divisor /= 3) {
        const auto token = static_cast<std::size_t>(block / divisor % 3);
        const auto s = static_cast<std::size_t>(state);
        const double drafted = automaton.draft[static_cast<std::size_t>(j)][s][token];
        probability *= drafted;
        if (probability == 0.0) break;
        carry = std::min(1.0, carry * automaton.target[s][token] / drafted);
        sum += carry;
        state = automaton.next[s * 3 + token];
      }
      expected += probability * sum;
    }
    const Enumeration result = enumerate(automaton, {Rule::block, 3, Drafting::sampled}, 1);
    REQUIRE(std::abs(result.accepted.mean_accepted() - expected) < 1e-14);
  }
}

TEST_CASE("enumeration and the modulated context agree in every rule", "[theory][enumeration][modulated]") {
  Numbers numbers(555);
  for (int trial = 0; trial < 40; ++trial) {
    const int states = 1 + trial % 4;
    const int length = 1 + trial % 3;
    const Automaton automaton = random_automaton(numbers, 3, states, trial % 2 == 0 ? 1 : 3, trial % 3 == 0);
    for (const Drafting drafting : {Drafting::sampled, Drafting::argmax}) {
      for (const Rule rule : {Rule::token, Rule::greedy, Rule::sample_match, Rule::soft_argmax, Rule::resample_target_mutant}) {
        const RoundRule round{rule, length, drafting};
        const Modulation modulation = modulation_of(automaton, round);
        Distribution start(static_cast<std::size_t>(states), 0.0);
        start[static_cast<std::size_t>(automaton.start)] = 1.0;
        INFO("trial " << trial << " rule " << static_cast<int>(rule));
        const Enumeration first = enumerate(automaton, round, 1);
        const RoundDistribution distribution = round_distribution(modulation, start, length);
        for (std::size_t j = 0; j < distribution.accepted.size(); ++j) {
          REQUIRE(std::abs(distribution.accepted[j] - first.accepted.accepted[j]) < 1e-14);
        }
        const Distribution next = next_start(modulation, start, length);
        for (std::size_t s = 0; s < next.size(); ++s) REQUIRE(std::abs(next[s] - first.next_state[s]) < 1e-14);
        // Three rounds by repeated enumeration.
        Distribution here = start;
        double emitted = 0.0;
        for (int count = 0; count < 3; ++count) {
          Distribution after(here.size(), 0.0);
          for (int s = 0; s < states; ++s) {
            for (const RoundOutcome& outcome : round_outcomes(automaton, round, s)) {
              const double chance = here[static_cast<std::size_t>(s)] * outcome.probability;
              emitted += chance * static_cast<double>(outcome.emitted.size());
              after[static_cast<std::size_t>(outcome.end_state)] += chance;
            }
          }
          here = after;
        }
        REQUIRE(std::abs(expected_totals(modulation, start, length, 3).emitted - emitted) < 1e-13);
      }
    }
  }
  CHECK_THROWS_AS(modulation_of(first_pair(), {Rule::block, 2, Drafting::sampled}), InvariantBroken);
}

TEST_CASE("unequal overlaps by depth give the by-position distribution", "[theory][enumeration]") {
  Automaton automaton = one_state({0.5, 0.5}, {0.5, 0.5});
  automaton.draft = {{{0.6, 0.4}}, {{1.0, 0.0}}};  // overlaps .9 and .5
  const Enumeration result = enumerate(automaton, {Rule::token, 2, Drafting::sampled}, 4);
  CHECK(std::abs(result.expected_emitted - 2.35) < 1e-14);
  CHECK(result.largest_difference < 1e-15);
}

TEST_CASE("draft length 0, one-token vocabularies and malformed automata", "[theory][enumeration]") {
  const Enumeration none = enumerate(first_pair(), {Rule::token, 0, Drafting::sampled}, 3);
  CHECK(none.accepted.accepted == Distribution{1.0});
  CHECK(none.largest_difference < 1e-16);
  const Enumeration single = enumerate(one_state({1.0}, {1.0}), {Rule::token, 3, Drafting::sampled}, 5);
  CHECK(single.joint == Distribution{1.0});
  CHECK(single.expected_emitted == 4.0);
  Automaton broken = first_pair();
  broken.next = {0, 1};
  CHECK_THROWS_AS(enumerate(broken, {Rule::token, 1, Drafting::sampled}, 1), InvariantBroken);
  CHECK_THROWS_AS(enumerate(one_state({0.5, 0.4}, {0.5, 0.5}), {Rule::token, 1, Drafting::sampled}, 1), InvariantBroken);
  CHECK_THROWS_AS(enumerate(first_pair(), {Rule::token, 40, Drafting::sampled}, 1), InvariantBroken);
  CHECK_THROWS_AS(enumerate(first_pair(), {Rule::token, 1, Drafting::sampled}, 0), InvariantBroken);
}

}  // namespace specsim::theory_enumeration_test
