// The size of the preparation of a cell's contexts, and that it can be stopped.
#include "sim/experiments/run/runner.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <malloc.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <cstddef>
#include <string>

namespace specsim::preparation_test {

namespace {

std::string yaml_of(const char* decode, int vocab, int pool) {
  return fmt::format(
      "{{experiment: prepared, pair: {{vocab: {}, target: {{family: normal_logits, sigma: 2}}, draft: {{from: target, transform: "
      "logit_noise, value: 1}}}}, context: {{process: iid, pool: {}}}, decode: {}}}",
      vocab, pool, decode);
}

std::size_t allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

TEST_CASE("tables of blocks take the memory that is foreseen", "[preparation]") {
  if (mallinfo2().arena == 0) return;  // a sanitizer's allocator, which needs separate memory
  // Mutants, at least a sixth too small: an estimate without plans (the third), without the guide of ratios (the first).
  const auto [decode, vocab] = GENERATE(table<const char*, int>(
      {{"{drafter: {kind: chain, draft_length: 4}, verifier: block}", 30},
       {"{drafter: {kind: tree_static, branching: [4, 2]}, verifier: multi_draft_recursive}", 200},
       {"{drafter: {kind: tree_dynamic, depth: 4, width: 8, nodes: 48}, verifier: top_k_match}", 60},
       {"{drafter: {kind: tree_static, branching: [3]}, verifier: kseq}", 60},
       {"{drafter: {kind: tree_static, branching: [3]}, verifier: optimal_transport}", 6},
       {"{drafter: {kind: tree_static, branching: [3, 1], siblings: without_replacement}, verifier: typical}", 1000}}));
  INFO(decode);
  const spec::Experiment own = tests::experiment_of(yaml_of(decode, vocab, 500));
  const decode::PreparationPlan plan = spec::plan_of(own.cells[0]);
  const std::size_t empty = allocated();
  const decode::Prepared prepared = decode::prepare(plan, {});
  const auto used = static_cast<double>(allocated() - empty);
  const auto foreseen = static_cast<double>(decode::prepared_bytes(plan));
  CHECK(used < 1.02 * foreseen);
  CHECK(used > 0.8 * foreseen);
}

TEST_CASE("preparation stops when requested", "[preparation]") {
  const spec::Experiment own =
      tests::experiment_of(yaml_of("{drafter: {kind: chain, draft_length: 4}, verifier: block}", 30, 500));
  std::atomic<bool> stop = false;
  int seen = 0;
  const decode::DistributionObserver observer = [&](int, int, const verify::PositionDistributions&,
                                                    const decode::OutputClasses&) { stop = ++seen == 20; };
  CHECK_THROWS_AS(decode::prepare(spec::plan_of(own.cells[0]), observer, true, &stop), decode::Interrupted);
  CHECK(seen == 20);  // mutant: looks at `stop` before the first context only
}

}  // namespace specsim::preparation_test
