#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/foundation/base/check.h"
#include "tests/support/acceptance_bounds.h"

namespace specsim::theory_bounds_test {

using namespace specsim::theory;

namespace {

using Distribution = std::vector<double>;

const Distribution ten_target = {.3, .25, .15, .1, .08, .05, .03, .02, .01, .01};
const Distribution ten_draft = {.2, .2, .2, .15, .1, .05, .04, .03, .02, .01};
const Distribution first_target = {1.0 / 3.0, 2.0 / 3.0};
const Distribution first_draft = {2.0 / 3.0, 1.0 / 3.0};

Distribution random_distribution(std::uint64_t& state, std::size_t size, bool zeros) {
  Distribution distribution(size);
  double sum = 0.0;
  for (double& share : distribution) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    share = static_cast<double>(state >> 11U) * 0x1p-53;
    share = zeros && share < 0.3 ? 0.0 : share * share;
    sum += share;
  }
  if (sum == 0.0) distribution[0] = sum = 1.0;
  for (double& share : distribution) share /= sum;
  return distribution;
}

}  // namespace

TEST_CASE("G2, M3, M6: overlap, total variation and chi2 of the published examples", "[theory][bounds][claims]") {
  CHECK(std::abs(overlap(ten_target, ten_draft) - 0.85) < 1e-14);
  CHECK(std::abs(total_variation(ten_target, ten_draft) - 0.15) < 1e-14);
  CHECK(std::abs(chi_squared(ten_draft, ten_target) - 0.108) < 0.0005);
  CHECK(std::abs(chi_squared(first_draft, first_target) - 0.5) < 1e-14);
  CHECK(std::abs(overlap(first_target, first_draft) - 2.0 / 3.0) < 1e-15);
  // M6: the best guess is right with (1 + TV) / 2, not TV: it names the likelier distribution at each token, half the sum of
  // maxima.
  double guess = 0.0;
  for (std::size_t x = 0; x < 10; ++x) guess += 0.5 * std::max(ten_target[x], ten_draft[x]);
  CHECK(std::abs(adversary_probability(0.15) - guess) < 1e-14);
  CHECK(std::abs(guess - 0.575) < 1e-14);
}

TEST_CASE("L6: accepted and residual mass recover the target, accepted and rejected mass the draft", "[theory][bounds][claims]") {
  double residual = 0.0;
  double rejected = 0.0;
  for (std::size_t x = 0; x < 10; ++x) {
    const double accepted = std::min(ten_target[x], ten_draft[x]);
    residual += std::max(0.0, ten_target[x] - ten_draft[x]);
    rejected += ten_draft[x] - accepted;
  }
  CHECK(std::abs(residual - total_variation(ten_target, ten_draft)) < 1e-15);
  CHECK(std::abs(rejected - total_variation(ten_target, ten_draft)) < 1e-15);
}

TEST_CASE("M13: both bounds lie below alpha on random pairs, zeros included", "[theory][bounds][claims]") {
  std::uint64_t state = 99;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t size = 2 + static_cast<std::size_t>(trial) % 19;
    const Distribution target = random_distribution(state, size, trial % 3 == 0);
    const Distribution draft = random_distribution(state, size, trial % 4 == 0);
    const double alpha = overlap(target, draft);
    const double kl = kl_divergence(target, draft);
    REQUIRE(std::abs(alpha + total_variation(target, draft) - 1.0) < 1e-13);
    REQUIRE(alpha >= pinsker_alpha(kl) - 1e-13);
    REQUIRE(alpha >= bretagnolle_huber_alpha(kl) - 1e-13);
    REQUIRE(kl <= std::log1p(chi_squared(target, draft)) + 1e-12);
    REQUIRE(sample_match_alpha(target, draft) <= alpha + 1e-13);
  }
  CHECK(pinsker_alpha(0.0) == 1.0);
  CHECK(bretagnolle_huber_alpha(0.0) == 1.0);
  CHECK(pinsker_alpha(5.0) == 0.0);
  CHECK(std::abs(bretagnolle_huber_alpha(40.0) / (0.5 * std::exp(-40.0)) - 1.0) < 1e-12);
  // Pinsker's bound is better at small divergence, Bretagnolle-Huber's at large.
  CHECK(pinsker_alpha(0.1) > bretagnolle_huber_alpha(0.1));
  CHECK(pinsker_alpha(1.9) < bretagnolle_huber_alpha(1.9));
}

TEST_CASE("divergences by hand", "[theory][bounds]") {
  CHECK(std::abs(kl_divergence(first_target, first_draft) - std::log(2.0) / 3.0) < 1e-15);
  CHECK(kl_divergence(ten_target, ten_target) == 0.0);
  CHECK(std::isinf(kl_divergence(Distribution{0.5, 0.5}, Distribution{1.0, 0.0})));
  CHECK(std::abs(kl_divergence(Distribution{1.0, 0.0}, Distribution{0.5, 0.5}) - std::log(2.0)) < 1e-15);
  CHECK(std::isinf(chi_squared(Distribution{0.5, 0.5}, Distribution{1.0, 0.0})));
  CHECK(std::abs(chi_squared(Distribution{1.0, 0.0}, Distribution{0.5, 0.5}) - 1.0) < 1e-15);
  CHECK_THROWS_AS(overlap(Distribution{0.5, 0.5}, Distribution{1.0}), InvariantBroken);
  CHECK_THROWS_AS(overlap(Distribution{0.5, 0.4}, Distribution{0.5, 0.5}), InvariantBroken);
  CHECK_THROWS_AS(overlap(Distribution{1.5, -0.5}, Distribution{0.5, 0.5}), InvariantBroken);
}

TEST_CASE("L7: expected L1 of an empirical distribution", "[theory][bounds][claims]") {
  const Distribution uniform(8, 0.125);
  CHECK(std::abs(expected_empirical_l1(uniform, 5000) - 0.030) < 0.0005);
  // Exact for two cells by the binomial's mean absolute deviation: at n = 400 and 1/2 the limit errs by about 1/(4n).
  double exact = 0.0;
  for (int k = 0; k <= 400; ++k) {
    const double log_chance = std::lgamma(401.0) - std::lgamma(k + 1.0) - std::lgamma(401.0 - k) - 400.0 * std::log(2.0);
    exact += std::exp(log_chance) * 2.0 * std::abs(k / 400.0 - 0.5);
  }
  CHECK(std::abs(expected_empirical_l1(Distribution{0.5, 0.5}, 400) / exact - 1.0) < 1e-3);
}

TEST_CASE("G5: sample and match accepts 4/9, token verification 2/3", "[theory][bounds][claims]") {
  CHECK(std::abs(sample_match_alpha(first_target, first_draft) - 4.0 / 9.0) < 1e-15);
  CHECK(argmax(Distribution{0.4, 0.4, 0.2}) == 0);
  CHECK(argmax_draft_alpha(ten_target, ten_draft) == 0.3);
}

TEST_CASE("G1: the soft ratio with an argmax draft is biased", "[theory][bounds][claims]") {
  // target(x*) = 2/3 >= draft(x*) = .6: always emitted.
  const Distribution always = soft_argmax_distribution(first_target, Distribution{0.4, 0.6});
  CHECK(always == Distribution{0.0, 1.0});
  CHECK(std::abs(soft_argmax_bias(first_target, Distribution{0.4, 0.6}) - 1.0 / 3.0) < 1e-15);
  // target(x*) = 1/3 < draft(x*) = 2/3: emitted with probability 1/2 instead of 1/3.
  const Distribution half = soft_argmax_distribution(first_target, first_draft);
  CHECK(std::abs(half[0] - 0.5) < 1e-15);
  CHECK(std::abs(half[1] - 0.5) < 1e-15);
  CHECK(std::abs(soft_argmax_bias(first_target, first_draft) - 1.0 / 6.0) < 1e-15);
  CHECK(std::abs(soft_argmax_alpha(first_target, first_draft) - 0.5) < 1e-15);
  // Only a one-hot draft makes it exact; equal distributions do not.
  CHECK(std::abs(soft_argmax_bias(ten_target, ten_target) - 0.7) < 1e-14);
  CHECK(soft_argmax_bias(Distribution{0.0, 1.0}, Distribution{0.0, 1.0}) == 0.0);
  CHECK(soft_argmax_distribution(Distribution{0.3, 0.7}, Distribution{1.0, 0.0}) == Distribution{0.3, 0.7});
}

}  // namespace specsim::theory_bounds_test
