// Operations on laws, against slow reimplementations that share nothing with them.
#include "sim/math/simplex.h"
#include "sim/base/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace specsim;
using math::Sampling;

namespace {

using Law = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Lcg {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

Law random_law(Lcg& lcg, std::size_t size, bool zeros, bool ties) {
  Law law(size);
  double sum = 0.0;
  for (double& mass : law) {
    mass = ties ? std::floor(1.0 + 4.0 * lcg()) : lcg() * lcg();
    if (zeros && lcg() < 0.3) mass = 0.0;
    sum += mass;
  }
  if (sum == 0.0) law[0] = sum = 1.0;
  for (double& mass : law) mass /= sum;
  return law;
}

// ---- the settings, written down again: long double, no sorting, one token at a time ------------------------------------

using Long = std::vector<long double>;

Long normalised(Long law) {
  long double sum = 0.0L;
  for (const long double mass : law) sum += mass;
  for (long double& mass : law) mass /= sum;
  return law;
}

bool ahead(const Long& law, std::size_t a, std::size_t b) { return law[a] > law[b] || (law[a] == law[b] && a < b); }

Long slow_temperature(const Long& law, double temperature) {
  Long result(law.size(), 0.0L);
  const long double highest = *std::max_element(law.begin(), law.end());
  if (temperature == 0.0) {
    for (std::size_t x = 0; x < law.size(); ++x) {
      bool best = true;
      for (std::size_t y = 0; y < law.size(); ++y) best = best && (y == x || ahead(law, x, y));
      result[x] = best ? 1.0L : 0.0L;
    }
    return result;
  }
  for (std::size_t x = 0; x < law.size(); ++x)
    if (law[x] > 0.0L) result[x] = std::pow(law[x] / highest, 1.0L / static_cast<long double>(temperature));
  return normalised(result);
}

Long slow_top_k(const Long& law, int k) {
  if (k == 0) return law;
  Long result(law.size(), 0.0L);
  for (std::size_t x = 0; x < law.size(); ++x) {
    int before = 0;
    for (std::size_t y = 0; y < law.size(); ++y) before += y != x && ahead(law, y, x) ? 1 : 0;
    if (before < k) result[x] = law[x];
  }
  return normalised(result);
}

// `narrow` is set where rounding could decide.
Long slow_top_p(const Long& law, double p, bool& narrow) {
  if (p >= 1.0) return law;
  Long result(law.size(), 0.0L);
  for (std::size_t x = 0; x < law.size(); ++x) {
    long double before = 0.0L;
    bool first = true;
    for (std::size_t y = 0; y < law.size(); ++y) {
      if (y == x || !ahead(law, y, x)) continue;
      before += law[y];
      first = false;
    }
    narrow = narrow || std::abs(before - static_cast<long double>(p)) < 1e-12L;
    if (first || before < static_cast<long double>(p)) result[x] = law[x];
  }
  return normalised(result);
}

Long slow_min_p(const Long& law, double share, bool& narrow) {
  if (share == 0.0) return law;
  const long double least = static_cast<long double>(share) * *std::max_element(law.begin(), law.end());
  Long result(law.size(), 0.0L);
  for (std::size_t x = 0; x < law.size(); ++x) {
    narrow = narrow || std::abs(law[x] - least) < 1e-12L;
    if (law[x] >= least) result[x] = law[x];
  }
  return normalised(result);
}

// Steps 0 to 3: temperature, top_k, top_p, min_p.
Long slow_sampling(const Law& law, const Sampling& sampling, const std::array<int, 4>& order, bool& narrow) {
  Long result(law.begin(), law.end());
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

double distance(const Law& a, const Long& b) {
  double worst = a.size() == b.size() ? 0.0 : 1.0;
  for (std::size_t x = 0; x < a.size() && x < b.size(); ++x) {
    worst = std::max(worst, static_cast<double>(std::abs(static_cast<long double>(a[x]) - b[x])));
    if ((a[x] == 0.0) != (b[x] == 0.0L)) worst = std::max(worst, 1.0);  // the support is exact
  }
  return worst;
}

double sum_of(const Law& law) {
  long double sum = 0.0L;
  for (const double mass : law) sum += mass;
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
    const Law law = random_law(lcg, size, trial % 3 == 0, trial % 4 == 0);
    Sampling sampling;
    if (lcg() < 0.7) sampling.temperature = lcg() < 0.1 ? 0.0 : 0.2 + 3.0 * lcg();
    if (lcg() < 0.6) sampling.top_k = static_cast<int>(1.0 + lcg() * 32.0);
    if (lcg() < 0.6) sampling.top_p = 0.02 + 0.98 * lcg();
    if (lcg() < 0.6) sampling.min_p = lcg();
    bool narrow = false;
    const Long expected = slow_sampling(law, sampling, documented, narrow);
    if (narrow) continue;
    ++compared;
    Law actual = law;
    math::apply_sampling(actual, sampling);
    INFO("trial " << trial << ": vocab " << size << ", temperature " << sampling.temperature << ", top_k " << sampling.top_k
                  << ", top_p " << sampling.top_p << ", min_p " << sampling.min_p);
    REQUIRE(distance(actual, expected) < 1e-12);
    REQUIRE(std::abs(sum_of(actual) - 1.0) < 1e-14);
    for (std::size_t i = 0; i < orders.size(); ++i) {
      bool unused = false;
      if (!told_apart[i]) told_apart[i] = distance(actual, slow_sampling(law, sampling, orders[i], unused)) > 1e-6;
    }
  }
  CHECK(compared > 3000);
  // The test could have failed: every other order gives another law somewhere, but for top_k before the temperature, which keeps
  // the same tokens at the same ratios.
  for (std::size_t i = 0; i < orders.size(); ++i) {
    INFO("order " << orders[i][0] << orders[i][1] << orders[i][2] << orders[i][3]);
    CHECK(told_apart[i] == (orders[i] != std::array<int, 4>{1, 0, 2, 3}));
  }
}

TEST_CASE("temperature 0 is the lowest of the likeliest tokens", "[math]") {
  Law law = {0.1, 0.3, 0.3, 0.3};
  math::apply_sampling(law, {.temperature = 0.0, .top_k = 0, .top_p = 1.0, .min_p = 0.0});
  CHECK(law == Law{0.0, 1.0, 0.0, 0.0});
  CHECK(math::argmax(Law{0.25, 0.25, 0.25, 0.25}) == 0);
  CHECK(math::argmax(Law{0.0, 0.0, 1.0}) == 2);
  // The other settings leave a one-hot law alone.
  law = {0.2, 0.2, 0.6};
  math::apply_sampling(law, {.temperature = 0.0, .top_k = 2, .top_p = 0.3, .min_p = 1.0});
  CHECK(law == Law{0.0, 0.0, 1.0});
}

TEST_CASE("temperatures towards 0 and infinity", "[math]") {
  Lcg lcg{20260411};
  for (int trial = 0; trial < 50; ++trial) {
    const Law law = random_law(lcg, 40, true, false);
    double support = 0.0;
    for (const double mass : law) support += mass > 0.0 ? 1.0 : 0.0;
    Law hot = law;
    math::apply_temperature(hot, 1e6);
    for (std::size_t x = 0; x < law.size(); ++x) {
      if (law[x] > 0.0)
        REQUIRE(std::abs(hot[x] * support - 1.0) < 1e-4);  // masses here span 1e-9 .. 1: log-ratios up to 20 over 1e6
      else
        REQUIRE(hot[x] == 0.0);
    }
    for (const double temperature : {1e-3, 1e-6, 1e-300, 5e-324}) {
      Law cold = law;
      math::apply_temperature(cold, temperature);
      REQUIRE(std::abs(sum_of(cold) - 1.0) < 1e-14);
      REQUIRE(math::argmax(cold) == math::argmax(law));
      for (std::size_t x = 0; x < law.size(); ++x) REQUIRE((cold[x] >= 0.0 && (law[x] > 0.0 || cold[x] == 0.0)));
      if (temperature <= 1e-6) REQUIRE(cold[math::argmax(law)] > 0.9);
    }
    Law warm = law;  // T, then 1 / T: back again
    math::apply_temperature(warm, 1.7);
    math::apply_temperature(warm, 1.0 / 1.7);
    for (std::size_t x = 0; x < law.size(); ++x) REQUIRE(std::abs(warm[x] - law[x]) < 1e-14);
  }
  // Probabilities that a product would lose: ratios of 1e-300.
  Law far = {1.0, 1e-300, 0.0};
  math::apply_temperature(far, 100.0);
  CHECK(std::abs(far[1] / far[0] - 1e-3) < 1e-15);
  CHECK(far[2] == 0.0);
}

TEST_CASE("top-k keeps the lower of equal tokens", "[math]") {
  Law law = {0.1, 0.2, 0.2, 0.2, 0.1, 0.2};
  math::keep_top_k(law, 3);
  CHECK(distance(law, {0.0L, 1.0L / 3, 1.0L / 3, 1.0L / 3, 0.0L, 0.0L}) < 1e-15);
  law = {0.25, 0.25, 0.25, 0.25};
  math::keep_top_k(law, 1);
  CHECK(law == Law{1.0, 0.0, 0.0, 0.0});
  law = {0.5, 0.25, 0.25};
  const Law before = law;
  math::keep_top_k(law, 3);
  CHECK(law == before);
  math::keep_top_k(law, 1000000);
  CHECK(law == before);
}

TEST_CASE("top-p keeps the token that reaches the mass", "[math]") {
  Law law = {0.5, 0.25, 0.125, 0.125};  // sums are exact
  const auto kept = [&](double p) {
    Law cut = law;
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
  Law cut = law;
  math::keep_top_p(cut, 0.875);
  CHECK(distance(cut, {4.0L / 7, 2.0L / 7, 1.0L / 7, 0.0L}) < 1e-15);
}

TEST_CASE("min-p keeps tokens at the share of the likeliest one's and above it", "[math]") {
  Law law = {0.5, 0.25, 0.125, 0.125};
  math::keep_min_p(law, 0.5);
  CHECK(distance(law, {2.0L / 3, 1.0L / 3, 0.0L, 0.0L}) < 1e-15);
  law = {0.5, 0.25, 0.125, 0.125};
  math::keep_min_p(law, 0.25);
  CHECK(law == Law{0.5, 0.25, 0.125, 0.125});
  math::keep_min_p(law, 1.0);
  CHECK(law == Law{1.0, 0.0, 0.0, 0.0});
  law = {0.5, 0.0, 0.5};
  math::keep_min_p(law, 1.0);
  CHECK(law == Law{0.5, 0.0, 0.5});
}

TEST_CASE("neutral settings change nothing, to the bit", "[math]") {
  Lcg lcg{20260412};
  const Law law = random_law(lcg, 100, true, false);
  Law same = law;
  math::apply_sampling(same, {});
  CHECK(same == law);
}

TEST_CASE("softmax neither overflows nor underflows as a whole", "[math]") {
  Law law = {1e308, 1e308, -1e308};
  math::softmax(law);
  CHECK(law == Law{0.5, 0.5, 0.0});
  law = {-1e308, -1e308};
  math::softmax(law);
  CHECK(law == Law{0.5, 0.5});
  law = {-kInfinity, 3.0, -kInfinity};
  math::softmax(law);
  CHECK(law == Law{0.0, 1.0, 0.0});
  law = {1000.0, 1000.0 + std::log(3.0)};
  math::softmax(law);
  CHECK(std::abs(law[0] - 0.25) < 1e-12);  // log 3 is rounded at the scale of 1000
  law = {0.0, 1.0, 2.0, -5.0};
  Long slow;
  for (const double logit : law) slow.push_back(std::exp(static_cast<long double>(logit)));
  math::softmax(law);
  CHECK(distance(law, normalised(slow)) < 1e-15);
}

TEST_CASE("normalising, overlap and point masses", "[math]") {
  Law law = {1.0, 3.0};
  math::normalise(law);
  CHECK(law == Law{0.25, 0.75});
  law = {1e-310, 3e-310};
  math::normalise(law);
  CHECK(std::abs(law[0] - 0.25) < 1e-12);
  for (Law bad : {Law{0.0, 0.0}, Law{kInfinity, 1.0}, Law{std::numeric_limits<double>::quiet_NaN(), 1.0}, Law{-1.0, 0.5}})
    CHECK_THROWS_AS(math::normalise(bad), InvariantBroken);
  CHECK(math::overlap(Law{0.5, 0.5, 0.0}, Law{0.25, 0.25, 0.5}) == 0.5);
  CHECK(math::overlap(Law{1.0, 0.0}, Law{0.0, 1.0}) == 0.0);
  law = {0.5, 0.5, 0.0};
  math::point_mass(law, 2);
  CHECK(law == Law{0.0, 0.0, 1.0});
}
