// The p-values of `specsim check`: exact ones by hand, and their distribution if there is no fault.
#include "sim/experiments/judge/power.h"
#include "tests/support/cells.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace specsim::power_test {

namespace {

// P(X = k) of a binomial, [k], each computed from the one before.
std::vector<double> binomial(int n, double share) {
  std::vector<double> p = {std::pow(1.0 - share, n)};
  for (int k = 0; k < n; ++k) p.push_back(p.back() * (n - k) / (k + 1.0) * share / (1.0 - share));
  return p;
}

// The share of samples without a mistake that a test of this level rejects, if a p-value counts `factor` times.
double size_of(int n, double share, double level, double factor) {
  const std::vector<double> chances = binomial(n, share);
  double size = 0.0;
  for (int k = 0; k <= n; ++k)
    if (factor * judge::binomial_p(k, n, share) <= level) size += chances[static_cast<std::size_t>(k)];
  return size;
}

// p-values of many runs of one cell by the rules that theory covers.
std::vector<double> p_values(double alpha, int rounds, int runs) {
  std::vector<double> all;
  for (int seed = 1; seed <= runs; ++seed) {
    const tests::ReadyCell ready(fmt::format(
        "{{experiment: unbiased, seed: {}, rounds: {}, pair: {{vocab: 4, target: {{family: uniform}}, draft: {{from: target, "
        "transform: overlap, value: {}, shape: disjoint_tail}}}}, decode: {{verifier: token, drafter: {{kind: chain, "
        "draft_length: "
        "1}}}}}}",
        seed, rounds, alpha));
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    const auto total = static_cast<std::uint64_t>(rounds);
    for (std::uint64_t i = 0; i * simulator.chunk_size() < total; ++i) simulator.run(i, total, counts);
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), total);
    all.push_back(judge::MeanTest(ready.cell(), 1, prediction, counts).p());
  }
  return all;
}

}  // namespace

TEST_CASE("binomial p-values are two-sided: twice the smaller tail", "[judge]") {
  // By hand: of ten tosses at most one head has probability 11 / 1024. Mutant: a single tail.
  CHECK(judge::binomial_p(1, 10, 0.5) == Approx(22.0 / 1024).epsilon(1e-12));
  CHECK(judge::binomial_p(9, 10, 0.5) == Approx(22.0 / 1024).epsilon(1e-12));
  CHECK(judge::binomial_p(0, 10, 0.5) == Approx(2.0 / 1024).epsilon(1e-12));
  CHECK(judge::binomial_p(5, 10, 0.5) == 1.0);
  // Three or four of four at 1/4: 12/256 + 1/256.
  CHECK(judge::binomial_p(3, 4, 0.25) == Approx(26.0 / 256).epsilon(1e-12));
  // None of two at 1/10: .81, which doubled is more than 1.
  CHECK(judge::binomial_p(0, 2, 0.1) == 1.0);
  CHECK(judge::binomial_p(7, 7, 1.0) == 1.0);
}

TEST_CASE("binomial p-values under the null reject no more often than their level", "[judge]") {
  bool half_is_caught = false;
  for (const int n : {1, 7, 57, 400})
    for (const double share : {0.003, 0.1, 0.3, 0.5, 0.9})
      for (const double level : {0.5, 0.2, 0.1, 0.05, 0.01, 0.001}) {
        CAPTURE(n, share, level);
        CHECK(size_of(n, share, level, 1.0) <= level * (1.0 + 1e-9));
        half_is_caught = half_is_caught || size_of(n, share, level, 0.5) > level;
      }
  CHECK(half_is_caught);  // mutant: the smaller tail, without doubling
  // With many trials the whole level is used, except for the last count's share.
  CHECK(size_of(400, 0.5, 0.1, 1.0) > 0.07);
}

TEST_CASE("p-values of runs without a mistake are uniform", "[judge][stat]") {
  // Normal: 4,000 rounds at alpha .5. Mutants: p is not doubled, so the lower half of the bins is empty; an error of the mean
  // that is a fifth too small or too large.
  const std::vector<double> p = p_values(0.5, 4000, 600);
  std::vector<double> bins(10, 0.0);
  for (const double one : p) ++bins[std::min<std::size_t>(9, static_cast<std::size_t>(one * 10.0))];
  CHECK(tests::chi_square_p(bins, 60.0) > 1e-4);
  // Counted: about 40 rejections at alpha .99. p-values of whole counts reject a little less often than their level.
  const std::vector<double> counted = p_values(0.99, 4000, 600);
  for (const double level : {0.5, 0.2, 0.1}) {
    CAPTURE(level);
    double rejected = 0.0;
    for (const double one : counted) rejected += one <= level ? 1.0 : 0.0;
    const double deviation = std::sqrt(600.0 * level * (1.0 - level));
    CHECK(rejected < 600.0 * level + 4.0 * deviation);
    CHECK(rejected > 600.0 * 0.75 * level - 4.0 * deviation);
  }
}

TEST_CASE("the smallest leak that is seen is the one at which the exact test rejects as often as it promises", "[judge]") {
  // Counts of a rare class: n trials at `share`, with a leak some of them at `leaked`. A count is rejected if its p is below the
  // level and it is above the mean. Mutants: power or level of one side counted twice; the critical count off by one.
  struct Setting {
    int n;
    double share, leaked, level;
  };
  for (const Setting& own : {Setting{500, 0.02, 0.5, 0.01}, Setting{2000, 0.001, 0.2, 0.001}, Setting{50, 0.3, 0.9, 0.05}}) {
    CAPTURE(own.n, own.share);
    const auto power = [&](double leak) {
      const std::vector<double> chances = binomial(own.n, own.share + leak * (own.leaked - own.share));
      double rejected = 0.0;
      for (int k = 0; k <= own.n; ++k)
        if (k > own.n * own.share && judge::binomial_p(k, own.n, own.share) < own.level)
          rejected += chances[static_cast<std::size_t>(k)];
      return rejected;
    };
    const double leak = judge::rare_leak(own.n, own.share, own.leaked, own.level);
    REQUIRE(leak > 0.0);
    REQUIRE(leak < 1.0);
    CHECK(power(leak) == Approx(judge::kPower).epsilon(1e-6));
    CHECK(power(0.0) <= own.level / 2.0);
  }
  // One trial can never be rejected: its smallest p is twice .1.
  CHECK(std::isinf(judge::rare_leak(1, 0.1, 1.0, 0.1)));
  // If the draft gives the class no more than the target, a leak does not change the count.
  CHECK(std::isinf(judge::rare_leak(1000, 0.1, 0.1, 0.01)));
}

}  // namespace specsim::power_test
