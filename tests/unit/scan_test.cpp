// Draws by scanning: the distribution that they imply, and tokens that must never be drawn.
#include "sim/foundation/math/scan.h"
#include "sim/foundation/math/alias_table.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace specsim::scan_test {

using math::ScanSums;

namespace {

constexpr std::uint64_t kGrid = std::uint64_t{1} << 53;

double unit(std::uint64_t m) { return static_cast<double>(m) * 0x1.0p-53; }

struct Lcg {
  std::uint64_t state;
  double operator()() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

enum class Shape { flat, steep, zeros, alone, tiny };

std::vector<double> weights_of(Lcg& lcg, std::size_t size, Shape shape) {
  std::vector<double> weights(size);
  for (std::size_t x = 0; x < size; ++x) {
    switch (shape) {
      case Shape::flat:
        weights[x] = 1.0 + lcg();
        break;
      case Shape::steep:
        weights[x] = std::exp(-30.0 * lcg());
        break;
      case Shape::zeros:
        weights[x] = lcg() < 0.6 ? 0.0 : lcg();
        break;
      case Shape::alone:
        weights[x] = 0.0;
        break;
      case Shape::tiny:
        weights[x] = lcg() < 0.5 ? 1e-300 * lcg() : lcg();
        break;
    }
  }
  if (*std::max_element(weights.begin(), weights.end()) == 0.0)
    weights[static_cast<std::size_t>(lcg() * static_cast<double>(size))] = 0.37;
  return weights;
}

// Grid points from which a token beyond x is drawn: the end of x's interval. This requires monotone draws, which are tested
// separately.
std::uint64_t end_of(const ScanSums& sums, const std::vector<double>& weights, Token x) {
  std::uint64_t low = 0;
  std::uint64_t high = kGrid;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (sums.pick(weights, unit(middle)) > x)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace

TEST_CASE("the distribution that a scan implies is its weights", "[math]") {
  // By bisection of the uniform, token by token, without sampling. Detects a boundary that belongs to the wrong token, a block
  // sum that misses its tail, and a scan that starts a block with the rest of the last one.
  Lcg lcg{20260406};
  for (const std::size_t size : {1U, 2U, 3U, 7U, 8U, 9U, 15U, 17U, 100U, 511U, 512U, 513U, 520U, 1023U, 1024U, 1025U, 1100U}) {
    for (const Shape shape : {Shape::flat, Shape::steep, Shape::zeros, Shape::alone, Shape::tiny}) {
      const std::vector<double> weights = weights_of(lcg, size, shape);
      long double total = 0.0L;
      for (const double w : weights) total += w;
      ScanSums sums;
      sums.sum(weights);
      REQUIRE(std::abs(sums.total() - static_cast<double>(total)) <= 1e-14 * static_cast<double>(total));
      std::uint64_t begin = 0;
      double worst = 0.0;
      bool zeros_stay = true;
      for (std::size_t x = 0; x < size; ++x) {
        if (size > 520 && x > 40 && x + 40 < size && (x + 20) % 512 > 40 && x % 7 != 0) {  // thinned out far from the borders
          if (x + 1 < size && ((x + 1) % 7 == 0 || (x + 21) % 512 <= 40 || x + 1 + 40 >= size))
            begin = end_of(sums, weights, static_cast<Token>(x));
          continue;
        }
        const std::uint64_t end = end_of(sums, weights, static_cast<Token>(x));
        const double implied = unit(end - begin);
        if (!(weights[x] > 0.0)) zeros_stay = zeros_stay && end == begin;
        worst = std::max(worst, std::abs(implied - static_cast<double>(weights[x] / total)));
        begin = end;
      }
      INFO("size " << size << ", shape " << static_cast<int>(shape));
      CHECK(worst < 1e-13);
      CHECK(zeros_stay);
      CHECK(begin == kGrid);  // the last token's interval ends at 1
    }
  }
}

TEST_CASE("a scan finds the token in the middle of its interval, at every size from 1 to 1100", "[math]") {
  Lcg lcg{20260407};
  for (std::size_t size = 1; size <= 1100; ++size) {
    const auto shape = static_cast<Shape>(size % 3);
    const std::vector<double> weights = weights_of(lcg, size, shape);
    long double total = 0.0L;
    for (const double w : weights) total += w;
    ScanSums sums;
    sums.sum(weights);
    long double before = 0.0L;
    std::size_t wrong = 0;
    for (std::size_t x = 0; x < size; ++x) {
      const auto u = static_cast<double>((before + 0.5L * weights[x]) / total);
      // An interval below the rounding of the sums has no safe midpoint.
      if (static_cast<double>(weights[x] / total) > 1e-11 && sums.pick(weights, u) != x) ++wrong;
      before += weights[x];
    }
    INFO("size " << size);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("a scan is monotone and never draws a token of weight zero", "[math]") {
  // At 0, next to 1, and within a few grid points of every token's boundary, including block boundaries.
  Lcg lcg{20260408};
  for (std::size_t size = 1; size <= 1100; size += size < 40 ? 1 : 37) {
    for (const Shape shape : {Shape::flat, Shape::steep, Shape::zeros, Shape::alone, Shape::tiny}) {
      const std::vector<double> weights = weights_of(lcg, size, shape);
      ScanSums sums;
      sums.sum(weights);
      std::vector<std::uint64_t> points = {0, 1, 2, kGrid - 3, kGrid - 2, kGrid - 1};
      double running = 0.0;
      for (std::size_t x = 0; x < size; ++x) {
        running += weights[x];
        const auto border = static_cast<std::uint64_t>(std::min(running / sums.total(), 1.0) * 0x1.0p53);
        for (std::uint64_t m = border > 3 ? border - 3 : 0; m <= border + 3 && m < kGrid; ++m) points.push_back(m);
      }
      std::sort(points.begin(), points.end());
      Token last = 0;
      bool monotone = true;
      bool positive = true;
      for (const std::uint64_t m : points) {
        const Token token = sums.pick(weights, unit(m));
        monotone = monotone && token >= last && token < size;
        positive = positive && token < size && weights[token] > 0.0;
        last = token;
      }
      INFO("size " << size << ", shape " << static_cast<int>(shape));
      REQUIRE(monotone);
      REQUIRE(positive);
    }
  }
}

TEST_CASE("a single token with weight is always drawn, at any place", "[math]") {
  ScanSums sums;
  for (const std::size_t size : {1U, 8U, 511U, 512U, 513U, 1024U, 1100U}) {
    for (std::size_t at = 0; at < size; at += at < 4 || at + 4 >= size || at % 512 < 2 || at % 512 > 509 ? 1 : 13) {
      std::vector<double> weights(size, 0.0);
      weights[at] = 1e-3;
      sums.sum(weights);
      for (const std::uint64_t m : {std::uint64_t{0}, kGrid / 2, kGrid - 1}) REQUIRE(sums.pick(weights, unit(m)) == at);
    }
  }
}

TEST_CASE("sums are replaced, not added to", "[math]") {
  ScanSums sums;
  sums.sum(std::vector<double>(1100, 1.0));
  CHECK(sums.total() == 1100.0);
  const std::vector<double> weights = {1.0, 3.0};
  sums.sum(weights);
  CHECK(sums.total() == 4.0);
  CHECK(sums.pick(weights, 0.25 - 0x1p-53) == 0);
  CHECK(sums.pick(weights, 0.25) == 1);
  CHECK(sums.pick(weights, 1.0 - 0x1p-53) == 1);
}

TEST_CASE("a scan and an alias table imply the same distribution", "[math]") {
  // The two ways to draw share no code; the alias table's distribution is read from a grid of 2^20 words.
  Lcg lcg{20260409};
  for (const std::size_t size : {2U, 5U, 37U}) {
    const std::vector<double> weights = weights_of(lcg, size, Shape::flat);
    ScanSums sums;
    sums.sum(weights);
    const math::AliasTable table(weights);
    constexpr std::uint64_t kWords = 1 << 20;
    std::vector<double> by_table(size, 0.0);
    for (std::uint64_t i = 0; i < kWords; ++i) by_table[table.pick(i << 44 | 1ULL << 43)] += 1.0 / static_cast<double>(kWords);
    std::uint64_t begin = 0;
    for (std::size_t x = 0; x < size; ++x) {
      const std::uint64_t end = end_of(sums, weights, static_cast<Token>(x));
      // One grid cell may cut each of a token's size + 1 (at most) intervals of words.
      CHECK(std::abs(by_table[x] - unit(end - begin)) < static_cast<double>(2 * size + 2) / static_cast<double>(kWords));
      begin = end;
    }
  }
}

}  // namespace specsim::scan_test
