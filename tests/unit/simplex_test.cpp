// Operations on distributions, compared with slow reimplementations that share nothing with them.
#include "sim/foundation/math/simplex.h"
#include "sim/foundation/base/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace specsim::simplex_test {

using math::Sampling;

namespace {

using Distribution = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Lcg {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

Distribution random_distribution(Lcg& lcg, std::size_t size, bool zeros, bool ties) {
  Distribution distribution(size);
  double sum = 0.0;
  for (double& mass : distribution) {
    mass = ties ? std::floor(1.0 + 4.0 * lcg()) : lcg() * lcg();
    if (zeros && lcg() < 0.3) mass = 0.0;
    sum += mass;
  }
  if (sum == 0.0) distribution[0] = sum = 1.0;
  for (double& mass : distribution) mass /= sum;
  return distribution;
}

// ---- the settings, implemented independently: long double, no sorting, one token at a time ------------------------------------

using Long = std::vector<long double>;

Long normalised(Long distribution) {
  long double sum = 0.0L;
  for (const long double mass : distribution) sum += mass;
  for (long double& mass : distribution) mass /= sum;
  return distribution;
}

bool ahead(const Long& distribution, std::size_t a, std::size_t b) {
  return distribution[a] > distribution[b] || (distribution[a] == distribution[b] && a < b);
}

Long slow_temperature(const Long& distribution, double temperature) {
  Long result(distribution.size(), 0.0L);
  const long double highest = *std::max_element(distribution.begin(), distribution.end());
  if (temperature == 0.0) {
    for (std::size_t x = 0; x < distribution.size(); ++x) {
      bool best = true;
      for (std::size_t y = 0; y < distribution.size(); ++y) best = best && (y == x || ahead(distribution, x, y));
      result[x] = best ? 1.0L : 0.0L;
    }
    return result;
  }
  for (std::size_t x = 0; x < distribution.size(); ++x)
    if (distribution[x] > 0.0L) result[x] = std::pow(distribution[x] / highest, 1.0L / static_cast<long double>(temperature));
  return normalised(result);
}

Long slow_top_k(const Long& distribution, int k) {
  if (k == 0) return distribution;
  Long result(distribution.size(), 0.0L);
  for (std::size_t x = 0; x < distribution.size(); ++x) {
    int before = 0;
    for (std::size_t y = 0; y < distribution.size(); ++y) before += y != x && ahead(distribution, y, x) ? 1 : 0;
    if (before < k) result[x] = distribution[x];
  }
  return normalised(result);
}

// `narrow` is set if rounding could decide.
Long slow_top_p(const Long& distribution, double p, bool& narrow) {
  if (p >= 1.0) return distribution;
  Long result(distribution.size(), 0.0L);
  for (std::size_t x = 0; x < distribution.size(); ++x) {
    long double before = 0.0L;
    bool first = true;
    for (std::size_t y = 0; y < distribution.size(); ++y) {
      if (y == x || !ahead(distribution, y, x)) continue;
      before += distribution[y];
      first = false;
    }
    narrow = narrow || std::abs(before - static_cast<long double>(p)) < 1e-12L;
    if (first || before < static_cast<long double>(p)) result[x] = distribution[x];
  }
  return normalised(result);
}

Long slow_min_p(const Long& distribution, double share, bool& narrow) {
  if (share == 0.0) return distribution;
  const long double least = static_cast<long double>(share) * *std::max_element(distribution.begin(), distribution.end());
  Long result(distribution.size(), 0.0L);
  for (std::size_t x = 0; x < distribution.size(); ++x) {
    narrow = narrow || std::abs(distribution[x] - least) < 1e-12L;
    if (distribution[x] >= least) result[x] = distribution[x];
  }
  return normalised(result);
}

// Steps 0 to 3: temperature, top_k, top_p, min_p.
Long slow_sampling(const Distribution& distribution, const Sampling& sampling, const std::array<int, 4>& order, bool& narrow) {
  Long result(distribution.begin(), distribution.end());
  for (const int step : order) {
    switch (step) {
      case 0:
        result = sampling.temperature == 1.0 ? result : slow_temperature(result, sampling.temperature);
        break;
      case 1:
        result = slow_top_k(result, sampling.top_k);
        break;
      case 2:
        result = slow_top_p(result, sampling.top_p, narrow);
        break;
      default:
        result = slow_min_p(result, sampling.min_p, narrow);
        break;
    }
  }
  return result;
}

double distance(const Distribution& a, const Long& b) {
  double worst = a.size() == b.size() ? 0.0 : 1.0;
  for (std::size_t x = 0; x < a.size() && x < b.size(); ++x) {
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(a[x]) - b[x])));
    if ((a[x] == 0.0) != (b[x] == 0.0L)) worst = std::max(worst, 1.0);  // the support is exact
  }
  return worst;
}

double sum_of(const Distribution& distribution) {
  long double sum = 0.0L;
  for (const double mass : distribution) sum += mass;
  return static_cast<double>(sum);
}

}  // namespace

TEST_CASE("sampling settings equal a slow reimplementation, in the documented order", "[math]") {
  Lcg lcg{20260410};
  const std::array<int, 4> documented = {0, 1, 2, 3};
  std::vector<std::array<int, 4>> orders;
  std::array<int, 4> order = documented;
  while (std::next_permutation(order.begin(), order.end())) orders.push_back(order);
  std::vector<bool> told_apart(orders.size(), false);
  int compared = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const auto size = static_cast<std::size_t>(1.0 + lcg() * 30.0);
    const Distribution distribution = random_distribution(lcg, size, trial % 3 == 0, trial % 4 == 0);
    Sampling sampling;
    if (lcg() < 0.7) sampling.temperature = lcg() < 0.1 ? 0.0 : 0.2 + 3.0 * lcg();
    if (lcg() < 0.6) sampling.top_k = static_cast<int>(1.0 + lcg() * 32.0);
    if (lcg() < 0.6) sampling.top_p = 0.02 + 0.98 * lcg();
    if (lcg() < 0.6) sampling.min_p = lcg();
    bool narrow = false;
    const Long expected = slow_sampling(distribution, sampling, documented, narrow);
    if (narrow) continue;
    ++compared;
    Distribution actual = distribution;
    math::apply_sampling(actual, sampling);
    INFO("trial " << trial << ": vocab " << size << ", temperature " << sampling.temperature << ", top_k " << sampling.top_k
                  << ", top_p " << sampling.top_p << ", min_p " << sampling.min_p);
    REQUIRE(distance(actual, expected) < 1e-12);
    REQUIRE(std::abs(sum_of(actual) - 1.0) < 1e-14);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      bool unused = false;
      if (!told_apart[i]) told_apart[i] = distance(actual, slow_sampling(distribution, sampling, orders[i], unused)) > 1e-6;
    }
  }
  CHECK(compared > 3000);
  // The test has power: every other order gives another distribution somewhere, except top_k before the temperature, which keeps
  // the same tokens at the same ratios.
  for (std::size_t i = 0; i < orders.size(); ++i) {
    INFO("order " << orders[i][0] << orders[i][1] << orders[i][2] << orders[i][3]);
    CHECK(told_apart[i] == (orders[i] != std::array<int, 4>{1, 0, 2, 3}));
  }
}

TEST_CASE("temperature 0 is the lowest of the likeliest tokens", "[math]") {
  Distribution distribution = {0.1, 0.3, 0.3, 0.3};
  math::apply_sampling(distribution, {.temperature = 0.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0});
  CHECK(distribution == Distribution{0.0, 1.0, 0.0, 0.0});
  CHECK(math::argmax(Distribution{0.25, 0.25, 0.25, 0.25}) == 0);
  CHECK(math::argmax(Distribution{0.0, 0.0, 1.0}) == 2);
  // The other settings do not change a one-hot distribution.
  distribution = {0.2, 0.2, 0.6};
  math::apply_sampling(distribution, {.temperature = 0.0, .top_k = 2, .top_p = 0.3, .min_p = 1.0});
  CHECK(distribution == Distribution{0.0, 0.0, 1.0});
}

TEST_CASE("temperatures towards 0 and infinity", "[math]") {
  Lcg lcg{20260411};
  for (int trial = 0; trial < 50; ++trial) {
    const Distribution distribution = random_distribution(lcg, 40, true, false);
    double support = 0.0;
    for (const double mass : distribution) support += mass > 0.0 ? 1.0 : 0.0;
    Distribution hot = distribution;
    math::apply_temperature(hot, 1e6);
    for (std::size_t x = 0; x < distribution.size(); ++x) {
      if (distribution[x] > 0.0)
        REQUIRE(std::abs(hot[x] * support - 1.0) < 1e-4);  // masses here span 1e-9 .. 1: log-ratios up to 20 over 1e6
      else
        REQUIRE(hot[x] == 0.0);
    }
    for (const double temperature : {1e-3, 1e-6, 1e-300, 5e-324}) {
      Distribution cold = distribution;
      math::apply_temperature(cold, temperature);
      REQUIRE(std::abs(sum_of(cold) - 1.0) < 1e-14);
      REQUIRE(math::argmax(cold) == math::argmax(distribution));
      for (std::size_t x = 0; x < distribution.size(); ++x)
        REQUIRE((cold[x] >= 0.0 && (distribution[x] > 0.0 || cold[x] == 0.0)));
      if (temperature <= 1e-6) REQUIRE(cold[math::argmax(distribution)] > 0.9);
    }
    Distribution warm = distribution;  // T, then 1 / T: back again
    math::apply_temperature(warm, 1.7);
    math::apply_temperature(warm, 1.0 / 1.7);
    for (std::size_t x = 0; x < distribution.size(); ++x) REQUIRE(std::abs(warm[x] - distribution[x]) < 1e-14);
  }
  // Probabilities that a product would underflow: ratios of 1e-300.
  Distribution far = {1.0, 1e-300, 0.0};
  math::apply_temperature(far, 100.0);
  CHECK(std::abs(far[1] / far[0] - 1e-3) < 1e-15);
  CHECK(far[2] == 0.0);
}

TEST_CASE("top-k keeps the lower of equal tokens", "[math]") {
  Distribution distribution = {0.1, 0.2, 0.2, 0.2, 0.1, 0.2};
  math::keep_top_k(distribution, 3);
  CHECK(distance(distribution, {0.0L, 1.0L / 3, 1.0L / 3, 1.0L / 3, 0.0L, 0.0L}) < 1e-15);
  distribution = {0.25, 0.25, 0.25, 0.25};
  math::keep_top_k(distribution, 1);
  CHECK(distribution == Distribution{1.0, 0.0, 0.0, 0.0});
  distribution = {0.5, 0.25, 0.25};
  const Distribution before = distribution;
  math::keep_top_k(distribution, 3);
  CHECK(distribution == before);
  math::keep_top_k(distribution, 1000000);
  CHECK(distribution == before);
}

TEST_CASE("top-p keeps the token that reaches the mass", "[math]") {
  Distribution distribution = {0.5, 0.25, 0.125, 0.125};  // sums are exact
  const auto kept = [&](double p) {
    Distribution cut = distribution;
    math::keep_top_p(cut, p);
    return std::count_if(cut.begin(), cut.end(), [](double mass) { return mass > 0.0; });
  };
  CHECK(kept(0.49) == 1);
  CHECK(kept(0.5) == 1);
  CHECK(kept(0.5 + 0x1p-50) == 2);
  CHECK(kept(0.75) == 2);
  CHECK(kept(0.875) == 3);  // the tie between the last two: the lower token is in
  CHECK(kept(0.876) == 4);
  CHECK(kept(1.0) == 4);
  CHECK(kept(1e-300) == 1);
  Distribution cut = distribution;
  math::keep_top_p(cut, 0.875);
  CHECK(distance(cut, {4.0L / 7, 2.0L / 7, 1.0L / 7, 0.0L}) < 1e-15);
}

TEST_CASE("min-p keeps tokens at the share of the likeliest one's and above it", "[math]") {
  Distribution distribution = {0.5, 0.25, 0.125, 0.125};
  math::keep_min_p(distribution, 0.5);
  CHECK(distance(distribution, {2.0L / 3, 1.0L / 3, 0.0L, 0.0L}) < 1e-15);
  distribution = {0.5, 0.25, 0.125, 0.125};
  math::keep_min_p(distribution, 0.25);
  CHECK(distribution == Distribution{0.5, 0.25, 0.125, 0.125});
  math::keep_min_p(distribution, 1.0);
  CHECK(distribution == Distribution{1.0, 0.0, 0.0, 0.0});
  distribution = {0.5, 0.0, 0.5};
  math::keep_min_p(distribution, 1.0);
  CHECK(distribution == Distribution{0.5, 0.0, 0.5});
}

TEST_CASE("neutral settings change nothing, to the bit", "[math]") {
  Lcg lcg{20260412};
  const Distribution distribution = random_distribution(lcg, 100, true, false);
  Distribution same = distribution;
  math::apply_sampling(same, {});
  CHECK(same == distribution);
}

TEST_CASE("softmax neither overflows nor underflows as a whole", "[math]") {
  Distribution distribution = {1e308, 1e308, -1e308};
  math::softmax(distribution);
  CHECK(distribution == Distribution{0.5, 0.5, 0.0});
  distribution = {-1e308, -1e308};
  math::softmax(distribution);
  CHECK(distribution == Distribution{0.5, 0.5});
  distribution = {-kInfinity, 3.0, -kInfinity};
  math::softmax(distribution);
  CHECK(distribution == Distribution{0.0, 1.0, 0.0});
  distribution = {1000.0, 1000.0 + std::log(3.0)};
  math::softmax(distribution);
  CHECK(std::abs(distribution[0] - 0.25) < 1e-12);  // log 3 is rounded at the scale of 1000
  distribution = {0.0, 1.0, 2.0, -5.0};
  Long slow;
  for (const double logit : distribution) slow.push_back(std::exp(static_cast<long double>(logit)));
  math::softmax(distribution);
  CHECK(distance(distribution, normalised(slow)) < 1e-15);
}

TEST_CASE("normalising, overlap and point masses", "[math]") {
  Distribution distribution = {1.0, 3.0};
  math::normalise(distribution);
  CHECK(distribution == Distribution{0.25, 0.75});
  distribution = {1e-310, 3e-310};
  math::normalise(distribution);
  CHECK(std::abs(distribution[0] - 0.25) < 1e-12);
  distribution = {5e-324, 1.0, std::numeric_limits<double>::min()};
  math::normalise(distribution);
  CHECK(distribution == Distribution{0.0, 1.0, std::numeric_limits<double>::min()});
  for (Distribution bad : {Distribution{0.0, 0.0}, Distribution{kInfinity, 1.0},
                           Distribution{std::numeric_limits<double>::quiet_NaN(), 1.0}, Distribution{-1.0, 0.5}})
    CHECK_THROWS_AS(math::normalise(bad), InvariantBroken);
  CHECK(math::overlap(Distribution{0.5, 0.5, 0.0}, Distribution{0.25, 0.25, 0.5}) == 0.5);
  CHECK(math::overlap(Distribution{1.0, 0.0}, Distribution{0.0, 1.0}) == 0.0);
  distribution = {0.5, 0.5, 0.0};
  math::point_mass(distribution, 2);
  CHECK(distribution == Distribution{0.0, 0.0, 1.0});
}

}  // namespace specsim::simplex_test
