// Speed goals of rules for blocks, with prepared contexts at vocabulary 32,000.
#include "tests/support/cells.h"

#include "sim/draft/sequoia.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

namespace specsim {

namespace {

double best_seconds(const std::function<void()>& work, int repetitions = 5) {
  double best = 1e300;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double ns_per_round(const std::string& drafter, const std::string& verifier, std::uint64_t chunks) {
  const tests::ReadyCell cell(
      fmt::format("{{experiment: perf, rounds: 100000000, pair: {{vocab: 32000, target: {{family: zipf, exponent: 1.1}}, draft: "
                  "{{from: target, "
                  "transform: overlap, value: 0.7}}}}, decode: {{drafter: {}, verifier: {}}}}}",
                  drafter, verifier));
  const decode::Simulator simulator = cell.simulator();
  decode::Counts counts = simulator.empty_counts();
  const double seconds = best_seconds([&] {
    for (std::uint64_t i = 0; i < chunks; ++i) simulator.run(i, chunks * simulator.chunk_size(), counts);
  });
  return seconds / static_cast<double>(chunks * simulator.chunk_size()) * 1e9;
}

}  // namespace

TEST_CASE("block verification: at most 4 times the token verifier at alpha .7") {
  const std::string chain = "{kind: chain, draft_length: 5}";
  const double token = ns_per_round(chain, "token", 32);
  const double block = ns_per_round(chain, "block", 16);
  fmt::print("chain of 5 at alpha .7: token {:.1f} ns a round, block {:.1f} ns, ratio {:.2f} (goal 4)\n", token, block,
             block / token);
  CHECK(block <= 4.0 * token);
}

TEST_CASE("a tree of 64 nodes: 2 million rounds a second") {
  for (const char* verifier : {"multi_draft_recursive", "without_replacement"}) {
    const bool without = std::string(verifier) == "without_replacement";
    const double ns = ns_per_round(
        fmt::format("{{kind: tree_static, branching: [4, 3, 2, 1], siblings: {}}}", without ? "without_replacement" : "sampled"),
        verifier, 8);
    fmt::print("tree of 64, {}: {:.1f} ns a round, {:.2f} million/s (goal 2)\n", verifier, ns, 1e3 / ns);
    CHECK(ns <= 500.0);
  }
}

TEST_CASE("Sequoia's programme: budget 512, depth 32 below a second") {
  std::vector<double> acceptance;
  for (int i = 0; i < 32; ++i) acceptance.push_back(0.5 * std::pow(0.5, i));
  double tokens = 0.0;
  const double seconds = best_seconds([&] { tokens = draft::SequoiaProgramme(acceptance, 512, 32).tokens(512, 32); }, 3);
  fmt::print("Sequoia's programme, budget 512, depth 32, 32 ranks: {:.3f} s, {:.4f} tokens a round (goal 1 s)\n", seconds,
             tokens);
  CHECK(seconds < 1.0);
}

}  // namespace specsim
