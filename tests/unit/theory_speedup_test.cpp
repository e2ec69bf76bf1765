#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/round_distribution.h"
#include "sim/rounds/theory/speedup.h"

namespace specsim::theory_speedup_test {

using namespace specsim::theory;

namespace {

RatioCost by_ratio(double target_to_draft_ratio) { return RatioCost{1.0 / target_to_draft_ratio, 1.0, 0.0}; }

double continuous_speedup(double alpha, double length, const RatioCost& cost) {
  return (1.0 - std::pow(alpha, length + 1.0)) / (1.0 - alpha) /
         (length * cost.cost_ratio + cost.verify_inflation + cost.overhead);
}

bool rounds_to(double value, double figure, double unit) { return std::abs(value - figure) <= 0.5 * unit * (1.0 + 1e-9); }

}  // namespace

TEST_CASE("speedup in its conventions", "[theory][speedup]") {
  CHECK(speedup(3.0, 5, RatioCost{0.1, 1.2, 0.3}) == 3.0 / (0.5 + 1.2 + 0.3));
  CHECK(std::abs(speedup_by_target_to_draft_ratio(3.0, 5, 10.0) - speedup(3.0, 5, by_ratio(10.0))) < 1e-15);
  CHECK(tokens_per_second(3.0, 4, 0.005, 0.03) == 3.0 / 0.05);
  CHECK_THROWS_AS(speedup(3.0, 5, RatioCost{-0.1, 1.0, 0.0}), InvariantBroken);
  CHECK_THROWS_AS(speedup_by_target_to_draft_ratio(3.0, 5, 0.0), InvariantBroken);
}

TEST_CASE("M5: the four limits", "[theory][speedup][claims]") {
  const double tokens = tokens_per_round(0.7, 5);
  CHECK(speedup_by_target_to_draft_ratio(tokens, 5, std::numeric_limits<double>::infinity()) == tokens);
  CHECK(std::abs(speedup_by_target_to_draft_ratio(tokens_per_round(0.0, 5), 5, 10.0) - 1.0 / 1.5) < 1e-15);
  CHECK(std::abs(speedup_by_target_to_draft_ratio(tokens_per_round(1.0, 5), 5, 10.0) - 6.0 / 1.5) < 1e-15);
  CHECK(speedup_by_target_to_draft_ratio(tokens_per_round(0.7, 10000000), 10000000, 10.0) < 1e-5);
}

TEST_CASE("M7: the twelve best draft lengths and speedups", "[theory][speedup][claims]") {
  const double alphas[] = {0.6, 0.7, 0.8, 0.9};
  const double ratios[] = {10.0, 20.0, 50.0};
  const int lengths[4][3] = {{3, 4, 6}, {4, 6, 8}, {6, 8, 11}, {10, 13, 19}};
  const double speedups[4][3] = {{1.67, 1.92, 2.17}, {1.98, 2.35, 2.76}, {2.47, 3.09, 3.82}, {3.43, 4.67, 6.37}};
  int within_four_to_ten = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      INFO("alpha " << alphas[i] << " ratio " << ratios[j]);
      const BestDraftLength best = best_draft_length(alphas[i], by_ratio(ratios[j]));
      CHECK(best.draft_length == lengths[i][j]);
      CHECK(rounds_to(best.speedup, speedups[i][j], 0.01));
      if (best.draft_length >= 4 && best.draft_length <= 10) ++within_four_to_ten;
    }
  }
  CHECK(within_four_to_ten == 8);  // M10b
}

TEST_CASE("M8: the best length has a closed form in Lambert's function", "[theory][speedup][claims]") {
  CHECK(rounds_to(continuous_best_draft_length(0.7, by_ratio(10.0)), 4.0245, 1e-4));
  CHECK(rounds_to(continuous_best_draft_length(0.9, by_ratio(50.0)), 19.0584, 1e-4));
  CHECK(rounds_to(continuous_best_draft_length(0.5, by_ratio(20.0)), 3.09, 0.01));  // M10
}

TEST_CASE("the continuous optimum agrees with a numeric search", "[theory][speedup]") {
  for (const double alpha : {0.05, 0.3, 0.6, 0.9, 0.99, 0.9999}) {
    for (const double ratio : {0.01, 0.1, 0.5, 0.9, 1.0, 2.0}) {
      for (const double inflation : {1.0, 1.3}) {
        const RatioCost cost{ratio, inflation, 0.05};
        INFO("alpha " << alpha << " cost_ratio " << ratio << " inflation " << inflation);
        const double best = continuous_best_draft_length(alpha, cost);
        // The objective is unimodal: the optimum beats every grid point and its neighbourhood.
        const double top = continuous_speedup(alpha, best, cost);
        double highest = 0.0;
        for (int step = 0; step <= 8000; ++step) highest = std::max(highest, continuous_speedup(alpha, 0.25 * step, cost));
        CHECK(highest <= top * (1.0 + 1e-12));
        if (best > 0.0) {
          const double width = 1e-3 * (1.0 + best);
          CHECK(continuous_speedup(alpha, best + width, cost) < top);
          CHECK(continuous_speedup(alpha, std::max(0.0, best - width), cost) < top);
        }
        // The integer optimum is next to it, unless no speculation is better.
        const BestDraftLength searched = best_draft_length(alpha, cost, 4096);
        if (searched.draft_length > 0) CHECK(std::abs(searched.draft_length - best) < 1.0);
      }
    }
  }
}

TEST_CASE("the lower Lambert branch holds from the branch point to far beyond underflow", "[theory][speedup]") {
  for (const double excess :
       {1e-30, 1e-16, 1e-12, 9e-7, 1.1e-6, 1e-3, 0.1, 1.0, 10.0, 300.0, 689.0, 691.0, 744.0, 746.0, 799.0, 1e4, 1e12}) {
    INFO("excess " << excess);
    const double above_one = lambert_w_lower(excess);
    // z - ln(1 + z) in a form that does not cancel: the alternating series for small z.
    double value = above_one - std::log1p(above_one);
    if (above_one < 0.1) {
      value = 0.0;
      for (int power = 30; power >= 2; --power) value += (power % 2 == 0 ? 1.0 : -1.0) * std::pow(above_one, power) / power;
    }
    CHECK(std::abs(value / excess - 1.0) < 1e-13);
  }
  CHECK(lambert_w_lower(0.0) == 0.0);
  // Here e^-A underflows (A is about 7 million); the length stays small: y is about A, and ln y / -ln alpha - 1 about 1.28.
  CHECK(std::abs(continuous_best_draft_length(1e-3, RatioCost{1e-6, 1.0, 0.0}) - (std::log(6.9e6) / std::log(1e3) - 1.0)) < 1e-3);
  CHECK(continuous_best_draft_length(0.0, RatioCost{0.1, 1.0, 0.0}) == 0.0);
  CHECK(std::isinf(continuous_best_draft_length(1.0, RatioCost{0.1, 1.0, 0.0})));
  CHECK(std::isinf(continuous_best_draft_length(0.5, RatioCost{0.0, 1.0, 0.0})));
  CHECK(continuous_best_draft_length(0.5, RatioCost{2.0, 1.0, 0.0}) == 0.0);
}

TEST_CASE("M9, M10: the loss of the recommended lengths", "[theory][speedup][claims]") {
  const BestDraftLength typical = best_draft_length(0.7, by_ratio(10.0));
  CHECK(typical.draft_length == 4);
  CHECK(rounds_to(typical.speedup, 1.981, 0.001));
  CHECK(rounds_to(1.0 - constant_alpha_speedup(0.7, 8, by_ratio(10.0)) / typical.speedup, 0.103, 0.001));
  const BestDraftLength good = best_draft_length(0.9, by_ratio(20.0));
  CHECK(good.draft_length == 13);
  CHECK(rounds_to(1.0 - constant_alpha_speedup(0.9, 8, by_ratio(20.0)) / good.speedup, 0.064, 0.001));
  CHECK(rounds_to(1.0 - constant_alpha_speedup(0.9, 10, by_ratio(20.0)) / good.speedup, 0.021, 0.001));
  CHECK(best_draft_length(0.5, by_ratio(20.0)).draft_length == 3);
}

TEST_CASE("M11: three draft sizes for a 70B target", "[theory][speedup][claims]") {
  CHECK(rounds_to(best_draft_length(0.4, by_ratio(100.0)).speedup, 1.59, 0.01));
  CHECK(rounds_to(best_draft_length(0.75, by_ratio(10.0)).speedup, 2.19, 0.01));
  CHECK(rounds_to(best_draft_length(0.9, by_ratio(2.0)).speedup, 1.38, 0.01));
  CHECK(rounds_to(best_draft_length(0.9, by_ratio(2.5)).speedup, 1.58, 0.01));
  CHECK(rounds_to(best_draft_length(0.9, by_ratio(3.0)).speedup, 1.76, 0.01));
  const RoundDistribution small = constant_alpha(0.4, best_draft_length(0.4, by_ratio(100.0)).draft_length);
  CHECK(std::abs(small.accepted[0] + small.accepted[1] - 0.84) < 1e-14);
}

TEST_CASE("L3, G3: the worked figures", "[theory][speedup][claims]") {
  const RatioCost fifth{0.2, 1.0, 0.0};
  CHECK(rounds_to(tokens_per_round(0.7, 5), 2.9412, 1e-4));
  CHECK(rounds_to(constant_alpha_speedup(0.7, 5, fifth), 1.4706, 1e-4));
  // Three accepted are four emitted: with a free draft the speedup is 4, at cost ratio .1 and length 5 it is 2.67.
  CHECK(speedup(4.0, 5, RatioCost{0.0, 1.0, 0.0}) == 4.0);
  CHECK(rounds_to(speedup(4.0, 5, RatioCost{0.1, 1.0, 0.0}), 2.67, 0.01));
}

TEST_CASE("best length: no speculation wins if no speedup exceeds one", "[theory][speedup]") {
  CHECK(best_draft_length(0.3, RatioCost{0.3, 1.0, 0.0}).draft_length == 0);
  CHECK(best_draft_length(0.3, RatioCost{0.3, 1.0, 0.0}).speedup == 1.0);
  CHECK(best_draft_length(0.31, RatioCost{0.3, 1.0, 0.0}).draft_length == 1);
  CHECK(best_draft_length(1.0, RatioCost{0.1, 1.0, 0.0}, 64).draft_length == 64);
  CHECK(best_draft_length(0.9, RatioCost{0.1, 1.0, 0.0}, 0).draft_length == 0);
  const std::vector<double> tokens = {1.0, 1.5, 1.8, 2.5};
  CHECK(best_draft_length(tokens, RatioCost{0.1, 1.0, 0.0}).draft_length == 3);
}

TEST_CASE("break-even alpha", "[theory][speedup]") {
  for (const double ratio : {0.01, 0.1, 0.3, 0.8}) {
    for (const int length : {1, 2, 5, 12}) {
      for (const double inflation : {1.0, 1.4}) {
        const RatioCost cost{ratio, inflation, 0.02};
        const std::optional<double> alpha = break_even_alpha(length, cost);
        INFO("cost_ratio " << ratio << " draft_length " << length << " inflation " << inflation);
        if (alpha) {
          CHECK(std::abs(constant_alpha_speedup(*alpha, length, cost) - 1.0) < 1e-14);
        } else {
          CHECK(constant_alpha_speedup(1.0, length, cost) < 1.0);
        }
      }
    }
    // Without inflation or overhead some length pays exactly if alpha exceeds the cost ratio, and the shortest such length is 1.
    const std::optional<BreakEven> any = break_even_alpha_any(RatioCost{ratio, 1.0, 0.0});
    REQUIRE(any.has_value());
    CHECK(std::abs(any->alpha - ratio) < 1e-14);
    CHECK(any->draft_length == 1);
  }
  const RatioCost heavy{0.05, 1.5, 0.1};
  const std::optional<BreakEven> any = break_even_alpha_any(heavy);
  REQUIRE(any.has_value());
  CHECK(any->draft_length > 1);
  for (int length = 1; length <= 60; ++length) CHECK(break_even_alpha(length, heavy).value_or(1.0) >= any->alpha);
  CHECK(best_draft_length(any->alpha + 1e-6, heavy).draft_length > 0);
  CHECK(best_draft_length(any->alpha - 1e-6, heavy).draft_length == 0);
  for (const double ratio : {0.005, 0.03, 0.1, 0.2}) {
    for (const double inflation : {1.02, 1.1, 1.25, 1.6, 2.5}) {
      const RatioCost cost{ratio, inflation, 0.0};
      double least = 2.0;
      for (int length = 1; length <= 300; ++length) least = std::min(least, break_even_alpha(length, cost).value_or(2.0));
      const std::optional<BreakEven> found = break_even_alpha_any(cost, 300);
      INFO("cost_ratio " << ratio << " inflation " << inflation);
      CHECK((found ? found->alpha : 2.0) == least);
    }
  }
  CHECK_FALSE(break_even_alpha(3, RatioCost{1.1, 1.0, 0.0}).has_value());
  CHECK_FALSE(break_even_alpha_any(RatioCost{1.1, 1.0, 0.0}).has_value());
  CHECK(break_even_alpha(3, RatioCost{0.0, 1.0, 0.0}) == 0.0);
}

TEST_CASE("sensitivities equal finite differences", "[theory][speedup]") {
  constexpr double step = 1e-5;
  for (const double alpha : {0.1, 0.5, 0.9, 0.99}) {
    for (const int length : {1, 4, 20}) {
      const RatioCost cost{0.1, 1.2, 0.05};
      const SpeedupSensitivity slope = speedup_sensitivity(alpha, length, cost);
      const auto at = [&](double da, double dc, double dv) {
        return constant_alpha_speedup(alpha + da, length, RatioCost{0.1 + dc, 1.2 + dv, 0.05});
      };
      CHECK(std::abs((at(step, 0, 0) - at(-step, 0, 0)) / (2 * step) - slope.by_alpha) < 1e-6 * (1.0 + std::abs(slope.by_alpha)));
      CHECK(std::abs((at(0, step, 0) - at(0, -step, 0)) / (2 * step) - slope.by_cost_ratio) < 1e-5);
      CHECK(std::abs((at(0, 0, step) - at(0, 0, -step)) / (2 * step) - slope.by_verify_inflation) < 1e-6);
    }
  }
}

}  // namespace specsim::theory_speedup_test
