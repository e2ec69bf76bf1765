#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/series.h"
#include "sim/rounds/theory/round_distribution.h"
#include "tests/support/round_figures.h"

namespace specsim::theory_round_distribution_test {

using namespace specsim::theory;

TEST_CASE("geometric sum is exact at one, stable near one, and right elsewhere", "[theory][series]") {
  CHECK(math::geometric_sum(1.0, 0) == 0.0);
  CHECK(math::geometric_sum(1.0, 7) == 7.0);
  CHECK(math::geometric_sum(1.0, 1000) == 1000.0);
  CHECK(math::geometric_sum(0.0, 5) == 1.0);
  CHECK(math::geometric_sum(0.0, 500) == 1.0);
  for (const int terms : {3, 64, 65, 100, 5000}) {
    for (const double alpha : {0.01, 0.3, 0.49, 0.5, 0.9, 1.0 - 1e-6, 1.0 - 1e-12, 1.0 - 1e-16, 1.0 + 1e-10, 1.01}) {
      long double direct = 0.0L;
      for (int i = 0; i < terms; ++i) direct = direct * static_cast<long double>(alpha) + 1.0L;
      INFO("terms " << terms << " alpha " << alpha);
      CHECK(std::abs(math::geometric_sum(alpha, terms) / static_cast<double>(direct) - 1.0) < 1e-13);
    }
  }
  CHECK(math::geometric_sum_derivative(1.0, 5) == 10.0);
  CHECK(math::geometric_sum_derivative(0.5, 4) == 1.0 + 2 * 0.5 + 3 * 0.25);
  CHECK(math::geometric_sum_derivative(0.5, 1) == 0.0);
  CHECK_THROWS_AS(math::geometric_sum(-0.1, 3), InvariantBroken);
  CHECK_THROWS_AS(math::geometric_sum(0.1, -1), InvariantBroken);
}

TEST_CASE("compensated sum keeps what plain addition drops", "[theory][series]") {
  math::CompensatedSum sum;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) sum += term;
  CHECK(sum.value() == 2.0);
  math::CompensatedSum tenths;
  math::CompensatedSum half;
  for (int i = 0; i < 500000; ++i) {
    tenths += 0.1;
    half += 0.1;
  }
  tenths.add(half);
  CHECK(tenths.value() == 100000.0);
}

TEST_CASE("closed forms of the mean and the variance agree with the distribution", "[theory][round_distribution]") {
  for (const double alpha : {0.0, 0.1, 0.5, 0.7, 0.9, 0.999, 1.0 - 1e-12, 1.0}) {
    for (const int draft_length : {0, 1, 2, 5, 16, 80}) {
      INFO("alpha " << alpha << " draft_length " << draft_length);
      const RoundDistribution distribution = constant_alpha(alpha, draft_length);
      REQUIRE(distribution.draft_length() == draft_length);
      double mass = 0.0;
      double by_tails = 0.0;
      for (const double share : distribution.accepted) mass += share;
      for (int j = 1; j <= draft_length; ++j) by_tails += distribution.tail(j);
      CHECK(std::abs(mass - 1.0) < 1e-14);
      CHECK(std::abs(distribution.mean_accepted() - by_tails) < 1e-12);
      CHECK(std::abs(distribution.mean_emitted() - tokens_per_round(alpha, draft_length)) < 1e-12);
      const double variance = tokens_per_round_variance(alpha, draft_length);
      CHECK(std::abs(distribution.variance_emitted() - variance) < 1e-12 * (1.0 + variance));
      if (alpha < 0.95) {
        const double gap = 1.0 - alpha;
        const double quotient =
            (alpha - (2 * draft_length + 1) * gap * std::pow(alpha, draft_length + 1) - std::pow(alpha, 2 * draft_length + 2)) /
            (gap * gap);
        CHECK(std::abs(quotient - variance) < 1e-11 * (1.0 + variance));
      }
    }
  }
  CHECK(constant_alpha(0.5, 3).tail(0) == 1.0);
  CHECK(constant_alpha(0.5, 3).tail(-2) == 1.0);
  CHECK(constant_alpha(0.5, 3).tail(3) == 0.125);
  CHECK(constant_alpha(0.5, 3).tail(4) == 0.0);
  CHECK_THROWS_AS(constant_alpha(1.1, 3), InvariantBroken);
  CHECK_THROWS_AS(constant_alpha(0.5, -1), InvariantBroken);
}

TEST_CASE("near alpha one the variance keeps its relative accuracy", "[theory][round_distribution]") {
  // To first order in the gap a round is cut at one of the positions 0..k-1, each with probability gap.
  const double gap = std::ldexp(1.0, -40);
  CHECK(std::abs(tokens_per_round_variance(1.0 - gap, 4) / (gap * (16 + 9 + 4 + 1)) - 1.0) < 1e-10);
}

TEST_CASE("M4: the sum over lengths equals the geometric form for equal rates only", "[theory][round_distribution][claims]") {
  for (const double alpha : {0.2, 0.7, 0.9}) {
    double sum = 6.0 * std::pow(alpha, 5);
    for (int i = 1; i <= 5; ++i) sum += i * std::pow(alpha, i - 1) * (1.0 - alpha);
    CHECK(std::abs(sum - tokens_per_round(alpha, 5)) < 1e-13);
  }
  const std::vector<double> falling = {0.9, 0.5};
  const std::vector<double> rising = {0.5, 0.9};
  CHECK(std::abs(tokens_per_round(falling) - 2.35) < 1e-14);
  CHECK(std::abs(tokens_per_round(rising) - 1.95) < 1e-14);
  CHECK(std::abs(by_position(falling).mean_emitted() - 2.35) < 1e-14);
  CHECK(std::abs(by_position(rising).mean_emitted() - 1.95) < 1e-14);
  CHECK(std::abs(tokens_per_round(0.7, 2) - 2.19) < 1e-14);
}

TEST_CASE("M4: rates drawn independently per position act as their mean", "[theory][round_distribution][claims]") {
  double mean = 0.0;
  for (const double first : {0.5, 0.9}) {
    for (const double second : {0.5, 0.9}) mean += tokens_per_round(std::vector<double>{first, second}) / 4.0;
  }
  CHECK(std::abs(mean - tokens_per_round(0.7, 2)) < 1e-14);
}

TEST_CASE("M8b: one more drafted position adds a^(k+1), not -a^(k+1) ln a", "[theory][round_distribution][claims]") {
  CHECK(std::abs(marginal_tokens(0.7, 4) - 0.168) < 0.0005);
  CHECK(std::abs(claimed_marginal_tokens(0.7, 4) - 0.060) < 0.0005);
  for (const double alpha : {0.0, 0.3, 0.9, 1.0}) {
    CHECK(std::abs(tokens_per_round(alpha, 5) - tokens_per_round(alpha, 4) - marginal_tokens(alpha, 4)) < 1e-14);
  }
  CHECK(claimed_marginal_tokens(0.0, 4) == 0.0);
}

}  // namespace specsim::theory_round_distribution_test
