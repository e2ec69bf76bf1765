#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/length_policies.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/speedup.h"
#include "tests/support/random_automata.h"

namespace specsim::theory_length_policies_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

// The same draft length in every round.
PolicyFigures fixed_length(double alpha, int draft_length, const std::vector<double>& round_time) {
  PolicyFigures figures{std::vector<double>(round_time.size(), 0.0), tokens_per_round(alpha, draft_length),
                        round_time.at(static_cast<std::size_t>(draft_length))};
  figures.length_distribution[static_cast<std::size_t>(draft_length)] = 1.0;
  return figures;
}

// Goodput (Liu et al. 2024, SmartSpec, arXiv 2406.14066) at a known alpha: the fixed length with the largest rate, the shortest
// among equals. A policy at constant alpha that does not see outcomes in advance cannot do better.
PolicyFigures goodput_optimum(double alpha, const std::vector<double>& round_time) {
  PolicyFigures best = fixed_length(alpha, 0, round_time);
  for (std::size_t k = 1; k < round_time.size(); ++k) {
    PolicyFigures figures = fixed_length(alpha, static_cast<int>(k), round_time);
    if (figures.rate() > best.rate()) best = std::move(figures);
  }
  return best;
}

// Its speedup under the ratio model without a limit on the length: 1 / (1 - alpha + cost_ratio alpha), since every token takes a
// target pass or, with probability alpha, a draft pass.

double oracle_speedup(double alpha, double cost_ratio) { return 1.0 / (1.0 - alpha + cost_ratio * alpha); }

std::vector<double> ratio_times(double cost_ratio, int longest) {
  std::vector<double> times;
  for (int k = 0; k <= longest; ++k) times.push_back(1.0 + cost_ratio * k);
  return times;
}

// Least time to emit a text whose drafts would be accepted at the marked positions, over every choice of draft lengths.
double least_time(const std::vector<bool>& acceptable, double cost_ratio, int longest) {
  std::vector<double> time(acceptable.size() + 1, 0.0);
  for (std::size_t start = acceptable.size(); start-- > 0;) {
    double best = 1e300;
    for (int length = 0; length <= longest; ++length) {
      std::size_t end = start;
      for (int i = 0; i < length && end < acceptable.size() && acceptable[end]; ++i) ++end;
      best = std::min(best, 1.0 + cost_ratio * length + time[std::min(end + 1, acceptable.size())]);
    }
    time[start] = best;
  }
  return time[0];
}

double oracle_time(const std::vector<bool>& acceptable, double cost_ratio, int longest) {
  double time = 0.0;
  for (std::size_t start = 0; start < acceptable.size();) {
    int length = 0;
    while (length < longest && start < acceptable.size() && acceptable[start]) ++start, ++length;
    time += 1.0 + cost_ratio * length;
    ++start;
  }
  return time;
}

}  // namespace

TEST_CASE("goodput's optimum is the ratio model's best draft length", "[theory][length_policies]") {
  for (const double alpha : {0.0, 0.3, 0.6, 0.8, 0.95}) {
    for (const double cost_ratio : {0.02, 0.1, 0.5}) {
      const PolicyFigures best = goodput_optimum(alpha, ratio_times(cost_ratio, 64));
      const BestDraftLength expected = best_draft_length(alpha, RatioCost{cost_ratio, 1.0, 0.0}, 64);
      INFO("alpha " << alpha << " cost_ratio " << cost_ratio);
      CHECK(best.length_distribution[static_cast<std::size_t>(expected.draft_length)] == 1.0);
      CHECK(std::abs(best.rate() - expected.speedup) < 1e-14);
    }
  }
  // A step in the round time, such as a tile of the matrix product: the longest length before the step is best.
  std::vector<double> stepped(9, 1.0);
  for (std::size_t k = 5; k < stepped.size(); ++k) stepped[k] = 2.0;
  CHECK(goodput_optimum(0.8, stepped).length_distribution[4] == 1.0);
}

TEST_CASE("oracle: its distribution, its limit, and no choice of lengths beats it on any text",
          "[theory][length_policies][orders]") {
  for (const double alpha : {0.0, 0.5, 0.8}) {
    for (const double cost_ratio : {0.05, 0.3, 0.9}) {
      const PolicyFigures oracle = oracle_length(alpha, ratio_times(cost_ratio, 400));
      CHECK(std::abs(oracle.rate() - oracle_speedup(alpha, cost_ratio)) < 1e-12);
      CHECK(oracle_speedup(alpha, cost_ratio) >= goodput_optimum(alpha, ratio_times(cost_ratio, 64)).rate() - 1e-14);
    }
  }
  const PolicyFigures two = oracle_length(0.5, ratio_times(0.1, 2));
  CHECK(two.length_distribution == std::vector<double>{0.5, 0.25, 0.25});
  CHECK(std::abs(two.tokens_per_round - 1.75) < 1e-15);
  CHECK(std::abs(two.time_per_round - 1.075) < 1e-15);
  // Every text of 12 positions.
  for (int mask = 0; mask < 1 << 12; ++mask) {
    std::vector<bool> acceptable;
    for (int i = 0; i < 12; ++i) acceptable.push_back(((mask >> i) & 1) != 0);
    // The last token of a text is never a draft: both end with a final token there.
    acceptable.back() = false;
    for (const int longest : {1, 2, 3, 12})
      REQUIRE(oracle_time(acceptable, 0.7, longest) <= least_time(acceptable, 0.7, longest) + 1e-12);
  }
  // Above cost ratio 1 drafting does not pay, and an oracle that always drafts is slower.
  CHECK(oracle_time(std::vector<bool>{true, true, false}, 1.5, 3) > least_time({true, true, false}, 1.5, 3) + 0.1);
}

TEST_CASE("additive lengths: stationary distribution against the chain run by powers", "[theory][length_policies]") {
  for (const double alpha : {0.0, 0.4, 0.8, 0.95, 1.0}) {
    const PolicyFigures figures = additive_length(alpha, 2, 1, 1, ratio_times(0.05, 40));
    std::vector<double> distribution(41, 0.0);
    distribution[5] = 1.0;
    for (int round = 0; round < 20000; ++round) {
      std::vector<double> next(41, 0.0);
      for (int k = 1; k <= 40; ++k) {
        const auto i = static_cast<std::size_t>(k);
        double all = 1.0;
        for (int j = 0; j < k; ++j) all *= alpha;
        next[i] += 0.5 * distribution[i];  // lazy: no periods
        next[static_cast<std::size_t>(std::min(k + 2, 40))] += 0.5 * distribution[i] * all;
        next[static_cast<std::size_t>(std::max(k - 1, 1))] += 0.5 * distribution[i] * (1.0 - all);
      }
      distribution = next;
    }
    double tokens = 0.0;
    for (int k = 1; k <= 40; ++k) {
      INFO("alpha " << alpha << " length " << k);
      REQUIRE(std::abs(figures.length_distribution[static_cast<std::size_t>(k)] - distribution[static_cast<std::size_t>(k)]) <
              1e-10);
      double reach = 1.0;
      for (int j = 0; j <= k; ++j, reach *= alpha) tokens += distribution[static_cast<std::size_t>(k)] * reach;
    }
    CHECK(std::abs(figures.tokens_per_round - tokens) < 1e-9);
    CHECK(figures.rate() <= goodput_optimum(alpha, ratio_times(0.05, 40)).rate() + 1e-12);
  }
  CHECK(additive_length(0.0, 2, 1, 1, ratio_times(0.1, 20)).length_distribution[1] == 1.0);
  CHECK(additive_length(1.0, 2, 1, 1, ratio_times(0.1, 20)).length_distribution[20] == 1.0);
  // Two lengths by hand: from 1 up with alpha, from 2 down with 1 - alpha^2.
  const double alpha = 0.6;
  const PolicyFigures hand = additive_length(alpha, 1, 1, 1, ratio_times(0.1, 2));
  CHECK(std::abs(hand.length_distribution[2] - alpha / (alpha + 1.0 - alpha * alpha)) < 1e-15);
}

TEST_CASE("length policies refuse contradictory settings", "[theory][length_policies]") {
  CHECK_THROWS_AS(goodput_optimum(1.2, ratio_times(0.1, 4)), InvariantBroken);
  CHECK_THROWS_AS(additive_length(0.5, 2, 1, 0, ratio_times(0.1, 4)), InvariantBroken);
  CHECK_THROWS_AS(additive_length(0.5, 0, 1, 1, ratio_times(0.1, 4)), InvariantBroken);
}

}  // namespace specsim::theory_length_policies_test
