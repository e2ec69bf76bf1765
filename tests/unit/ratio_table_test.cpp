// Residuals of tables on both sides of the size from which they are sorted by digits, compared with passes over the vocabulary.
#include "sim/foundation/math/ratio_table.h"
#include "sim/foundation/math/simplex.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

namespace specsim::ratio_table_test {

TEST_CASE("residuals are those of a pass over all tokens, in small and in large vocabularies", "[ratio_table]") {
  std::mt19937_64 random(7);
  for (const std::size_t vocab : {3U, 399U, 401U, 3000U}) {
    std::vector<double> target(vocab);
    std::vector<double> draft(vocab);
    for (std::size_t x = 0; x < vocab; ++x) {
      // Ties, tokens that only one of the two has, and ratios over many orders of magnitude.
      target[x] = x % 7 == 0 ? 0.0 : std::pow(2.0, -static_cast<double>(random() % 20));
      draft[x] = x % 5 == 0 ? 0.0 : std::pow(2.0, -static_cast<double>(random() % 20));
    }
    draft[1] = 1.0;
    math::normalise(target);
    math::normalise(draft);
    math::AliasScratch scratch;
    const math::RatioTable table(target, draft, scratch);
    for (const double c : {1e-9, 0.01, 0.5, 1.0, 1.7, 40.0, 1e9}) {
      std::uint32_t count = 0;
      double mass = 0.0;
      Token first = static_cast<Token>(vocab);  // the first drawn: of the largest ratio, and of these the lowest token
      double largest = -1.0;
      for (std::size_t x = 0; x < vocab; ++x) {
        if (!(target[x] > 0.0)) continue;
        const double ratio = draft[x] > 0.0 ? target[x] / draft[x] : INFINITY;
        if (!(ratio > c)) continue;
        ++count;
        mass += target[x] - c * draft[x];
        if (ratio > largest) {
          largest = ratio;
          first = static_cast<Token>(x);
        }
      }
      const math::Residual residual = table.residual(c);
      INFO("vocab " << vocab << ", c " << c);
      CHECK(residual.count == count);
      CHECK(residual.mass == Approx(mass).margin(1e-12));
      if (count > 0) CHECK(table.pick(residual, 0.0) == first);
      // The token at u is the first, in the order of ratios, up to which the weights sum to more than u of the mass; also at the
      // boundaries of the parts of [0, 1) that a guide uses.
      for (std::uint64_t i = 0; count > 0 && mass > 1e-9 && i < 4096; ++i) {
        const double u =
            (i % 2 == 0 ? static_cast<double>(i / 2) / 2048.0 : std::nextafter(static_cast<double>(i / 2 + 1) / 2048.0, 0.0));
        const Token token = table.pick(residual, u);
        double below = 0.0;
        double own = target[token] - c * draft[token];
        const double ratio = table.ratio(token);
        for (std::size_t x = 0; x < vocab; ++x)
          if (const double other = table.ratio(static_cast<Token>(x)); other > ratio || (other == ratio && x < token))
            below += target[x] - c * draft[x];
        INFO("u " << u << ", token " << token);
        REQUIRE(below <= u * mass + 1e-12);
        REQUIRE(below + own >= u * mass - 1e-12);
      }
    }
    // The bounds hold at every c, including the boundaries of buckets, and are tight where verdicts need them.
    for (double c = 0x1.0p-22; c < 0x1.0p22; c *= 1.00093) {
      for (const double at : {c, std::exp2(std::round(std::log2(c)))}) {
        const double mass = table.residual(at).mass;
        const math::MassBounds bounds = table.mass_bounds(at);
        INFO("vocab " << vocab << ", c " << at);
        REQUIRE(bounds.least <= mass);
        REQUIRE(bounds.most >= mass);
        if (vocab >= 1000 && at >= 1.0 && at < 0x1.0p20) REQUIRE(bounds.most - bounds.least < 0.02);
      }
    }
    CHECK(table.mass_bounds(INFINITY).least <= table.residual(1e300).mass);
    CHECK(table.mass_bounds(1e300).most >= table.residual(1e300).mass);
  }
}

TEST_CASE("equal distributions leave no mass above c = 1, and the bounds say so") {
  const std::vector<double> both = {0.5, 0.25, 0.125, 0.125};
  math::AliasScratch scratch;
  const math::RatioTable table(both, both, scratch);
  CHECK(table.mass_bounds(1.0).most == 0.0);
  CHECK(table.mass_bounds(3.0).most == 0.0);
  CHECK(table.mass_bounds(0.25).least > 0.0);
}

}  // namespace specsim::ratio_table_test
