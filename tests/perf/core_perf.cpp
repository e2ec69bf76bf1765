// Speed goals, as ratios to the plain sketch (28 ns a round on the machine that the goals were set on) measured in the same
// run. Each figure is the best of several interleaved repetitions: what disturbs a measurement only ever slows it down.
#include "sim/math/scan.h"
#include "sim/math/simplex.h"
#include "tests/perf/sketch.h"
#include "tests/support/cells.h"
#include "tests/support/overlaps.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace specsim {

namespace {

constexpr double kSketchNs = 28.0;  // the goals' own yardstick
constexpr int kRepetitions = 7;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Best times of each piece of work, interleaved.
std::vector<double> best_of(const std::vector<std::function<void()>>& works, int repetitions = kRepetitions) {
  std::vector<double> best(works.size(), 1e300);
  for (int r = 0; r < repetitions; ++r)
    for (std::size_t i = 0; i < works.size(); ++i) best[i] = std::min(best[i], seconds(works[i]));
  return best;
}

std::string chain(int vocab, int draft_length, const std::string& draft, const std::string& context) {
  return fmt::format(
      "{{experiment: perf, rounds: 100000000, pair: {{vocab: {}, target: {{family: zipf, exponent: 1.1}}, draft: {}}}, context: "
      "{}, "
      "decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}}}",
      vocab, draft, context, draft_length);
}

const char* const kWarmer = "{from: target, transform: temperature, value: 1.25}";

std::function<void()> rounds_of(const tests::ReadyCell& cell, std::uint64_t rounds) {
  return [&cell, rounds] {
    const decode::Simulator simulator = cell.simulator();
    decode::Counts counts = simulator.empty_counts();
    const std::uint64_t chunks = rounds / simulator.chunk_size();
    for (std::uint64_t i = 0; i < chunks; ++i) simulator.run(i, chunks * simulator.chunk_size(), counts);
    REQUIRE(counts.rounds == chunks * simulator.chunk_size());
  };
}

constexpr std::uint64_t kRounds = 64 * 16384;

}  // namespace

TEST_CASE("chain of 5, zipf 1.1 over 32,000, draft at temperature 1.25, fixed context: at most 19/28 of the sketch") {
  std::vector<double> target(32000);
  std::vector<double> draft;
  for (std::size_t x = 0; x < target.size(); ++x) target[x] = std::pow(static_cast<double>(x) + 1.0, -1.1);
  math::normalise(target);
  draft = target;
  math::apply_temperature(draft, 1.25);
  tests::Sketch sketch(target, draft);
  const tests::ReadyCell cell(chain(32000, 5, kWarmer, "{process: fixed}"));
  REQUIRE(tests::overlaps_of(cell.cell())[0] == Approx(0.709).margin(0.001));
  const std::vector<double> best = best_of({[&] { REQUIRE(sketch.run(kRounds, 5) > kRounds); }, rounds_of(cell, kRounds)});
  const double ratio = best[1] / best[0];
  fmt::print("fixed chain of 5:     {:6.1f} ns a round, sketch {:6.1f} ns, ratio {:.3f} (goal {:.3f})\n", best[1] / kRounds * 1e9,
             best[0] / kRounds * 1e9, ratio, 19.0 / kSketchNs);
  CHECK(ratio <= 19.0 / kSketchNs);

  const tests::ReadyCell pool(chain(32000, 5, "{from: target, transform: permute, value: 0.3}", "{process: iid, pool: 256}"));
  const std::vector<double> pooled = best_of({[&] { REQUIRE(sketch.run(kRounds, 5) > kRounds); }, rounds_of(pool, kRounds)});
  const double pool_ratio = pooled[1] / pooled[0];
  fmt::print(
      "pool of 256 contexts: {:6.1f} ns a round ({:.1f} million/s), sketch {:6.1f} ns, ratio {:.3f} (goal {:.3f}: 10 million/s "
      "where the sketch takes 28 ns)\n",
      pooled[1] / kRounds * 1e9, kRounds / pooled[1] * 1e-6, pooled[0] / kRounds * 1e9, pool_ratio, 100.0 / kSketchNs);
  CHECK(pool_ratio <= 100.0 / kSketchNs);
}

TEST_CASE("cost per round grows at most 1.5 times from vocabulary 1,000 to 32,000") {
  // The same alpha at both sizes, so that rounds are equally long.
  const char* const draft = "{from: target, transform: overlap, value: 0.75, shape: uniform_mix}";
  const tests::ReadyCell small(chain(1000, 5, draft, "{process: fixed}"));
  const tests::ReadyCell large(chain(32000, 5, draft, "{process: fixed}"));
  const std::vector<double> best = best_of({rounds_of(small, kRounds), rounds_of(large, kRounds)});
  fmt::print("vocabulary 1,000 to 32,000: {:.1f} to {:.1f} ns, ratio {:.3f} (goal 1.5)\n", best[0] / kRounds * 1e9,
             best[1] / kRounds * 1e9, best[1] / best[0]);
  CHECK(best[1] / best[0] <= 1.5);
}

TEST_CASE("cost is linear in draft length") {
  // Nearly all drafts accepted, so that a round judges draft_length positions.
  const char* const draft = "{from: target, transform: overlap, value: 0.995}";
  const tests::ReadyCell four(chain(32000, 4, draft, "{process: fixed}"));
  const tests::ReadyCell eight(chain(32000, 8, draft, "{process: fixed}"));
  const tests::ReadyCell sixteen(chain(32000, 16, draft, "{process: fixed}"));
  const std::vector<double> best = best_of({rounds_of(four, kRounds), rounds_of(eight, kRounds), rounds_of(sixteen, kRounds)});
  const double first = (best[1] - best[0]) / 4.0;
  const double second = (best[2] - best[1]) / 8.0;
  fmt::print(
      "draft length 4, 8, 16: {:.1f}, {:.1f}, {:.1f} ns; a position costs {:.2f} and {:.2f} ns, ratio {:.3f} (goal 1.25)\n",
      best[0] / kRounds * 1e9, best[1] / kRounds * 1e9, best[2] / kRounds * 1e9, first / kRounds * 1e9, second / kRounds * 1e9,
      second / first);
  CHECK(second / first <= 1.25);
}

TEST_CASE("two threads: at least 1.8 times") {
  const tests::ReadyCell cell(chain(32000, 5, kWarmer, "{process: fixed}"));
  const std::function<void()> work = rounds_of(cell, 4 * kRounds);
  const auto both = [&] {
    std::thread other(work);
    work();
    other.join();
  };
  const std::vector<double> best = best_of({work, both});
  const double gain = 2.0 * best[0] / best[1];
  fmt::print("two threads: {:.2f} times one (goal 1.8 on two free cores)\n", gain);
  if (std::thread::hardware_concurrency() >= 2) CHECK(gain >= 1.8);
}

TEST_CASE("fresh distributions: at least half the speed of streaming the arrays once for each pass") {
  // The passes over distributions that exist: draw a draft token (sum the draft), judge it, and on a rejection form and sum the
  // residual from both distributions. Making the distributions is the family's business and is not counted.
  const std::size_t vocab = 131072;
  const std::size_t distributions = 32;  // beyond the caches
  std::vector<std::vector<double>> target(distributions, std::vector<double>(vocab));
  std::vector<std::vector<double>> draft = target;
  for (std::size_t i = 0; i < distributions; ++i) {
    for (std::size_t x = 0; x < vocab; ++x) {
      target[i][x] = 1.0 + static_cast<double>((x * 2654435761U + i) % 1000);
      draft[i][x] = 1.0 + static_cast<double>((x * 2246822519U + i) % 1000);
    }
    math::normalise(target[i]);
    math::normalise(draft[i]);
  }
  std::vector<double> residual(vocab);
  double sink = 0.0;
  const std::unique_ptr<verify::PositionRule> rule = verify::verifiers().find("token")->make({});
  const auto decode = [&] {  // what Simulator does at a rejected position, once it has the distributions
    math::ScanSums sums;
    for (std::size_t i = 0; i < distributions; ++i) {
      sums.sum(draft[i]);
      const Token x = sums.pick(draft[i], 0.37);
      const verify::PositionDistributions position{target[i], draft[i], draft[i]};
      sink += rule->odds(position, x).target;
      rule->rejected(position, residual);
      sums.sum(residual);
      sink += static_cast<double>(x + sums.pick(residual, 0.61));
    }
  };
  // The same traffic with nothing done: read the draft; read target and draft, write the residual.
  const auto stream = [&] {
    for (std::size_t i = 0; i < distributions; ++i) {
      std::array<double, 8> s{};
      for (std::size_t x = 0; x < vocab; x += 8)
        for (std::size_t k = 0; k < 8; ++k) s[k] += draft[i][x + k];
      for (std::size_t x = 0; x < vocab; ++x) residual[x] = target[i][x] + draft[i][x];
      sink += s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7] + residual[i];
    }
  };
  const std::vector<double> best = best_of({stream, decode}, 15);
  const double share = best[0] / best[1];
  const double bytes = static_cast<double>(distributions * vocab) * 8.0 * 4.0;
  fmt::print("fresh distributions: {:.1f} GB/s, streaming {:.1f} GB/s, share {:.2f} (goal 0.5)\n", bytes / best[1] * 1e-9,
             bytes / best[0] * 1e-9, share);
  CHECK(share >= 0.5);
  CHECK(sink != 0.0);
}

TEST_CASE("memory does not depend on rounds") {
  const tests::ReadyCell cell(chain(32000, 5, kWarmer, "{process: fixed}"));
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  rounds_of(cell, 16384)();
  const long before = peak();
  rounds_of(cell, 256 * 16384)();
  fmt::print("peak memory after 256 times the rounds: {:+} KiB\n", peak() - before);
  CHECK(peak() - before < 1024);
}

}  // namespace specsim
