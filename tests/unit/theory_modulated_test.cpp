#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/modulated.h"
#include "tests/support/modulated_rounds.h"
#include "tests/support/round_figures.h"

namespace specsim::theory_modulated_test {

using namespace specsim::theory;

namespace {

// A plain generator of test matrices; its quality does not matter.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (static_cast<double>(state_ >> 12U) + 0.5) * 0x1p-52;
  }

 private:
  std::uint64_t state_;
};

std::vector<double> random_distribution(Numbers& numbers, std::size_t size) {
  std::vector<double> distribution(size);
  double sum = 0.0;
  for (double& share : distribution) sum += share = numbers.next();
  for (double& share : distribution) share /= sum;
  return distribution;
}

// Every entry drawn freely: acceptance and the move depend on each other.
Modulation random_modulation(Numbers& numbers, int states, int positions) {
  const auto count = static_cast<std::size_t>(states);
  Modulation modulation;
  modulation.states = states;
  for (int j = 0; j < positions; ++j) {
    std::vector<double> accept;
    std::vector<double> reject;
    for (std::size_t s = 0; s < count; ++s) {
      const std::vector<double> row = random_distribution(numbers, 2 * count);
      accept.insert(accept.end(), row.begin(), row.begin() + states);
      reject.insert(reject.end(), row.begin() + states, row.end());
    }
    modulation.accept.push_back(accept);
    modulation.reject.push_back(reject);
  }
  for (std::size_t s = 0; s < count; ++s) {
    const std::vector<double> row = random_distribution(numbers, count);
    modulation.bonus.insert(modulation.bonus.end(), row.begin(), row.end());
  }
  return modulation;
}

// Walks every path of states and outcomes, position by position, and keeps the joint distribution of (rounds done, figures).
struct Walk {
  const Modulation& modulation;
  int draft_length;
  int rounds;
  std::map<std::vector<int>, double> distribution_of_accepted;  // accepted of every round, in order -> probability
  std::vector<double> started;
  std::vector<double> last_start;

  void go(std::size_t state, std::vector<int>& done, int position, double probability) {
    if (position == 0) {
      if (static_cast<int>(done.size()) == rounds) {
        distribution_of_accepted[done] += probability;
        last_start[state] += probability;
        return;
      }
      started[state] += probability;
    }
    const auto states = static_cast<std::size_t>(modulation.states);
    const auto depth = static_cast<std::size_t>(position);
    for (std::size_t next = 0; next < states; ++next) {
      const std::size_t entry = state * states + next;
      if (position == draft_length) {
        done.push_back(position);
        go(next, done, 0, probability * modulation.bonus[entry]);
        done.pop_back();
        continue;
      }
      const auto& accept = modulation.accept.size() == 1 ? modulation.accept[0] : modulation.accept[depth];
      const auto& reject = modulation.reject.size() == 1 ? modulation.reject[0] : modulation.reject[depth];
      go(next, done, position + 1, probability * accept[entry]);
      done.push_back(position);
      go(next, done, 0, probability * reject[entry]);
      done.pop_back();
    }
  }
};

Walk walk(const Modulation& modulation, const std::vector<double>& start, int draft_length, int rounds) {
  const auto states = static_cast<std::size_t>(modulation.states);
  Walk all{modulation, draft_length, rounds, {}, std::vector<double>(states, 0.0), std::vector<double>(states, 0.0)};
  std::vector<int> done;
  for (std::size_t s = 0; s < states; ++s) all.go(s, done, 0, start[s]);
  return all;
}

}  // namespace

TEST_CASE("one state is the constant or by-position distribution", "[theory][modulated]") {
  const std::vector<double> start = {1.0};
  const std::vector<double> stay = {1.0};
  const Modulation same = hidden_regimes(std::vector<double>{0.7}, stay);
  const Modulation unequal = hidden_regimes(std::vector<std::vector<double>>{{0.9}, {0.5}}, stay);
  CHECK(std::abs(round_distribution(same, start, 5).mean_emitted() - tokens_per_round(0.7, 5)) < 1e-14);
  CHECK(std::abs(round_distribution(unequal, start, 2).mean_emitted() - 2.35) < 1e-14);
  CHECK(std::abs(long_run_tokens_per_round(same, 5) - tokens_per_round(0.7, 5)) < 1e-14);
  CHECK(std::abs(long_run(same, 5).alpha() - 0.7) < 1e-14);
  CHECK(std::abs(emitted_variance(same, start, 5, 10) - 10.0 * tokens_per_round_variance(0.7, 5)) < 1e-12);
  CHECK(round_distribution(same, start, 0).accepted == std::vector<double>{1.0});
  CHECK(std::isnan(expected_totals(same, start, 0, 3).alpha()));
  CHECK(emitted_variance(same, start, 0, 3) == 0.0);
}

TEST_CASE("distributions, totals and variances equal a walk over every path", "[theory][modulated]") {
  Numbers numbers(20240611);
  struct Shape {
    int states;
    int positions;
    int draft_length;
    int rounds;
  };
  for (const Shape shape : {Shape{1, 1, 3, 3}, Shape{2, 1, 2, 3}, Shape{2, 2, 2, 3}, Shape{3, 2, 2, 2}, Shape{3, 1, 0, 3},
                            Shape{2, 3, 3, 2}, Shape{2, 1, 1, 4}, Shape{4, 1, 2, 2}}) {
    const Modulation modulation = random_modulation(numbers, shape.states, shape.positions);
    const auto states = static_cast<std::size_t>(shape.states);
    const std::vector<double> start = random_distribution(numbers, states);
    const Walk all = walk(modulation, start, shape.draft_length, shape.rounds);
    INFO("states " << shape.states << " draft_length " << shape.draft_length << " rounds " << shape.rounds);

    const std::size_t length = static_cast<std::size_t>(shape.draft_length);
    std::vector<double> tries(length, 0.0);
    std::vector<double> accepted(length, 0.0);
    std::vector<double> first_distribution(length + 1, 0.0);
    std::vector<double> reward(length + 1);
    for (double& value : reward) value = numbers.next();
    double emitted = 0.0;
    double square = 0.0;
    double reward_mean = 0.0;
    double reward_square = 0.0;
    for (const auto& [path, probability] : all.distribution_of_accepted) {
      int sum = 0;
      double gained = 0.0;
      for (const int count : path) {
        sum += count + 1;
        gained += reward[static_cast<std::size_t>(count)];
        for (int j = 0; j < shape.draft_length; ++j) {
          if (count >= j) tries[static_cast<std::size_t>(j)] += probability;
          if (count > j) accepted[static_cast<std::size_t>(j)] += probability;
        }
      }
      first_distribution[static_cast<std::size_t>(path[0])] += probability;
      emitted += probability * sum;
      square += probability * sum * sum;
      reward_mean += probability * gained;
      reward_square += probability * gained * gained;
    }
    const SequenceTotals totals = expected_totals(modulation, start, shape.draft_length, shape.rounds);
    CHECK(std::abs(totals.emitted - emitted) < 1e-12);
    CHECK(totals.rounds == shape.rounds);
    const RoundDistribution first = round_distribution(modulation, start, shape.draft_length);
    for (std::size_t j = 0; j <= length; ++j) CHECK(std::abs(first.accepted[j] - first_distribution[j]) < 1e-13);
    for (std::size_t j = 0; j < length; ++j) {
      CHECK(std::abs(totals.tries[j] - tries[j]) < 1e-13);
      CHECK(std::abs(totals.accepted[j] - accepted[j]) < 1e-13);
    }
    for (std::size_t s = 0; s < states; ++s) CHECK(std::abs(totals.rounds_started[s] - all.started[s]) < 1e-13);
    CHECK(std::abs(totals.distribution.mean_emitted() - emitted / shape.rounds) < 1e-13);
    CHECK(std::abs(emitted_variance(modulation, start, shape.draft_length, shape.rounds) - (square - emitted * emitted)) < 1e-11);
    CHECK(std::abs(reward_variance(modulation, start, shape.draft_length, shape.rounds, reward) -
                   (reward_square - reward_mean * reward_mean)) < 1e-11);

    const std::vector<RoundDistribution> by_state = round_distribution_by_state(modulation, shape.draft_length);
    std::vector<double> after(start);
    for (int round = 0; round < shape.rounds; ++round) after = next_start(modulation, after, shape.draft_length);
    for (std::size_t s = 0; s < states; ++s) CHECK(std::abs(after[s] - all.last_start[s]) < 1e-13);
    const std::vector<double> transition = round_transition(modulation, shape.draft_length);
    const std::vector<double> once = next_start(modulation, start, shape.draft_length);
    for (std::size_t next = 0; next < states; ++next) {
      double mass = 0.0;
      for (std::size_t s = 0; s < states; ++s) mass += start[s] * transition[s * states + next];
      CHECK(std::abs(mass - once[next]) < 1e-14);
    }
    for (std::size_t j = 0; j <= length; ++j) {
      double mass = 0.0;
      for (std::size_t s = 0; s < states; ++s) mass += start[s] * by_state[s].accepted[j];
      CHECK(std::abs(mass - first.accepted[j]) < 1e-14);
    }
  }
}

TEST_CASE("many rounds: the formed matrix agrees with single steps, and both with the long run", "[theory][modulated]") {
  Numbers numbers(77);
  const Modulation modulation = random_modulation(numbers, 5, 3);
  const std::vector<double> start = {0.0, 0.0, 1.0, 0.0, 0.0};
  std::vector<double> here = start;
  double emitted = 0.0;
  for (int round = 0; round < 40; ++round) {
    emitted += round_distribution(modulation, here, 3).mean_emitted();
    here = next_start(modulation, here, 3);
  }
  CHECK(std::abs(expected_totals(modulation, start, 3, 40).emitted - emitted) < 1e-12);
  const std::vector<double> stationary = stationary_start(modulation, 3);
  for (std::size_t s = 0; s < 5; ++s) CHECK(std::abs(stationary[s] - here[s]) < 1e-14);
  const SequenceTotals forever = long_run(modulation, 3);
  CHECK(std::abs(forever.emitted - forever.distribution.mean_emitted()) < 1e-14);
  const double many = expected_totals(modulation, start, 3, 1000000).tokens_per_round();
  CHECK(std::abs(many - forever.tokens_per_round()) < 1e-5);
  // From the stationary start, finite totals are the long-run values times the rounds.
  CHECK(std::abs(expected_totals(modulation, stationary, 3, 17).emitted - 17.0 * forever.emitted) < 1e-12);
}

TEST_CASE("the standard error of tokens per round is that of the exact variance", "[theory][modulated]") {
  Numbers numbers(4242);
  const Modulation free = random_modulation(numbers, 4, 1);
  const std::vector<double> start = random_distribution(numbers, 4);
  CHECK(std::abs(tokens_per_round_standard_error(free, start, 2, 200, 50.0) -
                 std::sqrt(emitted_variance(free, start, 2, 200) / 50.0) / 200.0) < 1e-15);
}

TEST_CASE("regimes that do not move mix rounds; regimes redrawn at each position act as their mean", "[theory][modulated]") {
  const std::vector<double> alpha = {0.5, 0.9};
  const std::vector<double> even = {0.5, 0.5};
  const Modulation frozen = hidden_regimes(alpha, {1.0, 0.0, 0.0, 1.0});
  CHECK(std::abs(expected_totals(frozen, even, 4, 100).tokens_per_round() -
                 (tokens_per_round(0.5, 4) + tokens_per_round(0.9, 4)) / 2.0) < 1e-12);
  CHECK(std::abs(expected_totals(frozen, even, 4, 100).tokens_per_round() - 3.016) < 0.0005);
  CHECK_THROWS_AS(stationary_start(frozen, 4), InvariantBroken);
  const Modulation fresh = hidden_regimes(alpha, {0.5, 0.5, 0.5, 0.5});
  CHECK(std::abs(long_run_tokens_per_round(fresh, 4) - tokens_per_round(0.7, 4)) < 1e-14);
  CHECK(std::abs(long_run(fresh, 4).alpha() - 0.7) < 1e-14);
}

TEST_CASE("stationary distribution: transient states get nothing, periodic chains are fine", "[theory][modulated]") {
  // State 0 leads into the cycle 1 -> 2 -> 1. Without drafts a round is one step.
  const Modulation cycle = hidden_regimes(std::vector<double>{0.5, 0.5, 0.5}, {0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0});
  const std::vector<double> distribution = stationary_start(cycle, 0);
  CHECK(distribution == std::vector<double>{0.0, 0.5, 0.5});
}

TEST_CASE("a malformed modulation is refused", "[theory][modulated]") {
  Modulation modulation = hidden_regimes(std::vector<double>{0.5, 0.6}, {0.5, 0.5, 0.5, 0.5});
  const std::vector<double> start = {1.0, 0.0};
  CHECK_THROWS_AS(round_distribution(modulation, std::vector<double>{1.0}, 2), InvariantBroken);
  CHECK_THROWS_AS(round_distribution(modulation, std::vector<double>{0.5, 0.4}, 2), InvariantBroken);
  CHECK_THROWS_AS(round_distribution(modulation, start, -1), InvariantBroken);
  CHECK_THROWS_AS(expected_totals(modulation, start, 2, 0), InvariantBroken);
  modulation.accept[0][0] += 0.1;
  CHECK_THROWS_AS(round_distribution(modulation, start, 2), InvariantBroken);
  CHECK_THROWS_AS(hidden_regimes(std::vector<double>{1.5}, {1.0}), InvariantBroken);
}

TEST_CASE("512 states: the stationary distribution is kept by a round, and elimination stays accurate", "[theory][modulated]") {
  Numbers numbers(5);
  const Modulation modulation = random_modulation(numbers, 512, 3);
  const std::vector<double> stationary = stationary_start(modulation, 3);
  const std::vector<double> after = next_start(modulation, stationary, 3);
  double moved = 0.0;
  for (std::size_t s = 0; s < 512; ++s) moved += std::abs(after[s] - stationary[s]);
  CHECK(moved < 1e-13);
  CHECK(std::abs(expected_totals(modulation, stationary, 3, 5).emitted - 5.0 * long_run_tokens_per_round(modulation, 3)) < 1e-12);
}

}  // namespace specsim::theory_modulated_test
