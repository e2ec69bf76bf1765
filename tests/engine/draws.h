// Random inputs and statistical judgement for the tests of the engine.
//
// Budget: 1e-5 false alarms for all statistical checks of this folder together, if every seed were redrawn; Sidak over
// kStatisticalChecks of them, which `passes` counts. Seeds are literals. Each check has a mutant that it must reject.
#pragma once

#include "sim/foundation/base/sim_time.h"
#include "sim/foundation/rng/address.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace specsim::tests {

inline Duration ps(std::int64_t n) { return Duration::from_ps(n); }
inline SimTime at_ps(std::int64_t n) { return SimTime::from_ps(n); }

// A stream of draws; two seeds share nothing.
class Draws {
 public:
  explicit Draws(std::uint64_t seed)
      : stream_(rng::make_key(seed, rng::hash_text("engine tests")), rng::Purpose::distribution, 0, 0) {}
  std::uint64_t below(std::uint64_t n) { return scale_bits(stream_(), n); }
  double exponential(double mean) { return -std::log1p(-rng::to_unit(stream_())) * mean; }

 private:
  rng::Stream stream_;
};

constexpr int kStatisticalChecks = 10;
inline double level() { return -std::expm1(std::log1p(-1e-5) / kStatisticalChecks); }

// Batch means: equal stretches of one long run, long enough to be nearly independent, judged by Student's t.
struct Estimate {
  double mean = 0.0;
  double standard_error = 0.0;
  double p_value = 0.0;  // two-sided, of the data if the claim holds
};

inline Estimate judge(const std::vector<double>& values, std::size_t batches, double claim) {
  const std::size_t size = values.size() / batches;
  std::vector<double> means(batches);
  for (std::size_t b = 0; b < batches; ++b) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(b * size);
    means[b] = std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), 0.0) / static_cast<double>(size);
  }
  const auto n = static_cast<double>(batches);
  const double mean = std::accumulate(means.begin(), means.end(), 0.0) / n;
  double squares = 0.0;
  for (const double m : means) squares += (m - mean) * (m - mean);
  const double error = std::sqrt(squares / (n - 1.0) / n);
  return {mean, error, student_t_p((mean - claim) / error, n - 1.0)};
}

// A check of the budget: the claim is right.
inline void passes(const char* what, const std::vector<double>& values, double claim, std::size_t batches = 64) {
  static int checks = 0;
  REQUIRE(++checks <= kStatisticalChecks);
  const Estimate e = judge(values, batches, claim);
  INFO(what << ": claimed " << claim << ", found " << e.mean << " +- " << e.standard_error << ", p " << e.p_value);
  CHECK(e.p_value > level());
  CHECK(e.standard_error < 0.02 * claim);  // or the check has little power
}

// The same check on a mutant, which it must reject.
inline void rejects(const char* mutant, const std::vector<double>& values, double claim, std::size_t batches = 64) {
  const Estimate e = judge(values, batches, claim);
  INFO(mutant << ": claimed " << claim << ", found " << e.mean << " +- " << e.standard_error << ", p " << e.p_value);
  CHECK(e.p_value < level());
}

}  // namespace specsim::tests
