// Whether 95 % intervals hold the truth at their stated rate.
#pragma once

#include "sim/foundation/math/quantiles.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace specsim::tests {

// The true coverage may be 93 to 97 %. A number of hits among `runs` is accepted if one such coverage gives it, or a more extreme
// one, with a probability of at least this: at 300 runs 258 to 300 hits, at 7,500 runs 91.7 to 97.8 %.
constexpr double kCoverageLevel = 1e-6;
constexpr double kLeastCoverage = 0.93;
constexpr double kMostCoverage = 0.97;

struct Coverage {
  int hits = 0;
  int runs = 0;
  void add(bool hit) {
    hits += hit ? 1 : 0;
    ++runs;
  }
  void add(double off, double half_width) { add(std::abs(off) <= half_width); }
  void add(const Coverage& other) {
    hits += other.hits;
    runs += other.runs;
  }
  [[nodiscard]] double share() const { return static_cast<double>(hits) / runs; }
  // True if the true coverage may be one of 93 to 97 %.
  [[nodiscard]] bool right() const {
    return math::binomial_at_most(hits, runs, kLeastCoverage) >= kCoverageLevel &&
           (hits == 0 || math::binomial_above(hits - 1.0, runs, kMostCoverage) >= kCoverageLevel);
  }
  [[nodiscard]] std::string text() const { return fmt::format("{} of {}, {:.3f}", hits, runs, share()); }
};

}  // namespace specsim::tests
