// Stationary distributions of finite chains.
#include "sim/foundation/math/stochastic_matrix.h"
#include "sim/foundation/base/check.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace specsim::stochastic_matrix_test {

using math::stationary_distribution;

namespace {

struct Lcg {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

bool close(const std::vector<double>& a, const std::vector<double>& b, double tolerance = 1e-13) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance)) return false;
  return true;
}

// Largest defect of distribution * transition = distribution and of the sum.
double defect(const std::vector<double>& transition, const std::vector<double>& distribution) {
  const std::size_t n = distribution.size();
  double worst = 0.0;
  double sum = -1.0;
  for (std::size_t j = 0; j < n; ++j) {
    double next = 0.0;
    for (std::size_t i = 0; i < n; ++i) next += distribution[i] * transition[i * n + j];
    worst = std::max(worst, std::abs(next - distribution[j]));
    sum += distribution[j];
  }
  return std::max(worst, std::abs(sum));
}

std::vector<double> random_rows(Lcg& lcg, std::size_t n, double sparsity) {
  std::vector<double> rows(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
      const bool kept = lcg() >= sparsity || j == (i + 1) % n;  // a cycle through all states keeps the chain irreducible
      sum += rows[i * n + j] = kept ? lcg() + 1e-3 : 0.0;
    }
    for (std::size_t j = 0; j < n; ++j) rows[i * n + j] /= sum;
  }
  return rows;
}

}  // namespace

TEST_CASE("stationary distributions of chains that are known in closed form", "[math]") {
  CHECK(close(stationary_distribution({1.0}, 1), {1.0}));
  CHECK(close(stationary_distribution({0.9, 0.1, 0.3, 0.7}, 2), {0.75, 0.25}));
  CHECK(close(stationary_distribution({0.0, 1.0, 1.0, 0.0}, 2), {0.5, 0.5}));  // periodic, yet one solution
  for (const double a : {1e-9, 1e-3, 0.2, 1.0})
    for (const double b : {1e-9, 1e-3, 0.7, 1.0}) {
      INFO("a " << a << ", b " << b);
      const std::vector<double> distribution = stationary_distribution({1.0 - a, a, b, 1.0 - b}, 2);
      // 1 - a is rounded to 1e-16, which moves the distribution by 1e-16 / (a + b).
      CHECK(close(distribution, {b / (a + b), a / (a + b)}, 1e-15 + 4e-16 / (a + b)));
    }
  // Doubly stochastic: uniform. A cycle: uniform, whatever its period.
  CHECK(close(stationary_distribution({0.2, 0.3, 0.5, 0.5, 0.2, 0.3, 0.3, 0.5, 0.2}, 3), {1.0 / 3, 1.0 / 3, 1.0 / 3}));
  CHECK(close(stationary_distribution({0, 1, 0, 0, 0, 1, 1, 0, 0}, 3), {1.0 / 3, 1.0 / 3, 1.0 / 3}));
  // Transient states have probability 0, an absorbing state has 1.
  CHECK(close(stationary_distribution({0.5, 0.25, 0.25, 0.0, 0.4, 0.6, 0.0, 0.2, 0.8}, 3), {0.0, 0.25, 0.75}));
  CHECK(close(stationary_distribution({0.5, 0.5, 0.0, 1.0}, 2), {0.0, 1.0}));
  // All rows equal: that row.
  CHECK(close(stationary_distribution({0.1, 0.2, 0.7, 0.1, 0.2, 0.7, 0.1, 0.2, 0.7}, 3), {0.1, 0.2, 0.7}));
}

TEST_CASE("a birth and death chain has a geometric stationary distribution", "[math]") {
  constexpr std::size_t n = 20;
  const double up = 0.2;
  const double down = 0.3;
  std::vector<double> rows(n * n, 0.0);
  std::vector<double> expected(n);
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i + 1 < n) rows[i * n + i + 1] = up;
    if (i > 0) rows[i * n + i - 1] = down;
    rows[i * n + i] = 1.0 - (i + 1 < n ? up : 0.0) - (i > 0 ? down : 0.0);
    sum += expected[i] = std::pow(up / down, static_cast<double>(i));
  }
  for (double& p : expected) p /= sum;
  CHECK(close(stationary_distribution(rows, n), expected));
}

TEST_CASE("the stationary distribution of random chains is one", "[math]") {
  Lcg lcg{20260404};
  for (const std::size_t n : {2U, 3U, 5U, 17U, 64U, 256U}) {
    for (const double sparsity : {0.0, 0.8}) {
      const std::vector<double> rows = random_rows(lcg, n, sparsity);
      const std::vector<double> distribution = stationary_distribution(rows, static_cast<int>(n));
      INFO("states " << n << ", sparsity " << sparsity);
      CHECK(defect(rows, distribution) < 1e-12);
      bool positive = true;
      for (const double p : distribution) positive = positive && p > 0.0;
      CHECK(positive);
    }
  }
}

TEST_CASE("chains without a unique stationary distribution are refused", "[math]") {
  CHECK_THROWS_AS(stationary_distribution({1, 0, 0, 1}, 2), InvariantBroken);
  CHECK_THROWS_AS(stationary_distribution({1, 0, 0, 0, 1, 0, 0.5, 0.5, 0}, 3), InvariantBroken);  // two absorbing states
  // Two closed classes, side by side and interleaved, with rows that do not sum to 1 exactly.
  CHECK_THROWS_AS(stationary_distribution({0.3, 0.7, 0, 0, 0.6, 0.4, 0, 0, 0, 0, 0.1, 0.9, 0, 0, 0.2, 0.8}, 4), InvariantBroken);
  CHECK_THROWS_AS(stationary_distribution({0.3, 0, 0.7, 0, 0, 0.1, 0, 0.9, 0.6, 0, 0.4, 0, 0, 0.2, 0, 0.8}, 4), InvariantBroken);
  Lcg lcg{20260405};
  int refused = 0;
  constexpr int kChains = 200;
  for (int chain = 0; chain < kChains; ++chain) {
    const auto n = static_cast<std::size_t>(4 + static_cast<int>(lcg() * 12.0));
    const std::size_t cut = n / 2;
    std::vector<double> rows(n * n, 0.0);
    const std::vector<double> a = random_rows(lcg, cut, 0.0);
    const std::vector<double> b = random_rows(lcg, n - cut, 0.0);
    for (std::size_t i = 0; i < cut; ++i)
      for (std::size_t j = 0; j < cut; ++j) rows[i * n + j] = a[i * cut + j];
    for (std::size_t i = cut; i < n; ++i)
      for (std::size_t j = cut; j < n; ++j) rows[i * n + j] = b[(i - cut) * (n - cut) + j - cut];
    try {
      static_cast<void>(stationary_distribution(rows, static_cast<int>(n)));
    } catch (const InvariantBroken&) {
      ++refused;
    }
  }
  CHECK(refused == kChains);
}

TEST_CASE("a matrix of the wrong size is refused", "[math]") {
  CHECK_THROWS_AS(stationary_distribution({}, 0), InvariantBroken);
  CHECK_THROWS_AS(stationary_distribution({0.5, 0.5, 0.5}, 2), InvariantBroken);
}

}  // namespace specsim::stochastic_matrix_test
