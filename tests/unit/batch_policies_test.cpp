// Policies of one draft length for the batch, simulated: all sequences of a batch draft the same length, in lockstep.
#include "sim/experiments/spec/spec.h"
#include "sim/rounds/decode/simulator.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>

namespace specsim::batch_policies_test {

namespace {

// Of one chunk.
decode::Counts counts_of(const std::string& policy, int batch, int length = 6) {
  const spec::Cell cell =
      tests::experiment_of(
          fmt::format(
              "{{experiment: batches, rounds: 100000, pair: {{vocab: 20, target: {{family: dirichlet, concentration: 0.5}}, "
              "draft: "
              "{{from: target, transform: mix_noise, value: 0.4, noise: {{family: uniform}}}}}}, context: {{sequence_rounds: "
              "40, process: iid, pool: 8}}, decode: {{drafter: {{kind: chain, draft_length: {}}}, policy: {}, verifier: token}}, "
              "cost: {{model: ratio, cost_ratio: 0.1}}, workload: {{batch: {}}}}}",
              length, policy, batch))
          .cells.at(0);
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  simulator.run(0, simulator.chunk_size(), counts);
  return counts;
}

// Draft lengths that occurred, and whether each was drafted by a multiple of the given number of sequences.
struct Lengths {
  int different = 0;
  bool alike = true;
};

Lengths lengths_of(const decode::Counts& counts, std::uint64_t together) {
  Lengths lengths;
  for (const std::uint64_t rounds : counts.drafted) {
    lengths.different += rounds > 0 ? 1 : 0;
    lengths.alike = lengths.alike && rounds % together == 0;
  }
  return lengths;
}

}  // namespace

TEST_CASE("a policy of one length for the batch gives all its sequences the same length in every round", "[policy]") {
  for (const char* policy :
       {"{kind: goodput, weight: 0.5}", "{kind: ema_tiers, tiers: [0, 1, 2, 3, 4, 5, 6], warm_up: 0, every: 1, weight: 0.9}"}) {
    for (const int batch : {2, 32, 64, 128, 256, 1000}) {
      const auto together = static_cast<std::uint64_t>(std::min(batch, 256));
      const Lengths lengths = lengths_of(counts_of(policy, batch), together);
      INFO(policy << ", batch " << batch);
      CHECK(lengths.alike);
      if (batch <= 32) CHECK(lengths.different > 1);  // the mean over a large batch may stay within one tier
    }
  }
  // With one sequence per batch, rounds of a length do not come in groups.
  CHECK_FALSE(lengths_of(counts_of("{kind: goodput_per_sequence, weight: 0.5}", 64), 64).alike);
  CHECK_FALSE(lengths_of(counts_of("{kind: goodput, weight: 0.5}", 1), 64).alike);
}

TEST_CASE("a tree under a policy is paid for by its levels, and the policy sees levels", "[policy]") {
  const spec::Experiment experiment = tests::experiment_of(
      "{experiment: tree, rounds: 1000, pair: {vocab: 5, target: {family: uniform}, draft: {family: uniform}}, decode: {drafter: "
      "{kind: "
      "tree_static, branching: [3, 2]}, policy: {kind: additive, first: 2}, verifier: multi_draft_recursive}, cost: {model: "
      "ratio, "
      "cost_ratio: 0.25}}");
  const spec::Cell& cell = experiment.cells.at(0);
  // Half of the rounds one level deep, 3 nodes, half two levels, 9 nodes.
  std::vector<std::uint64_t> drafted(10, 0);
  drafted[3] = drafted[9] = 500;
  CHECK(cell.round_time(0.0, drafted).draft.total() == Approx(0.25 * 1.5));
  // Target and draft are equal: every round is accepted completely, and the length stays at its maximum.
  const decode::PreparationPlan plan = spec::plan_of(cell);
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  simulator.run(0, simulator.chunk_size(), counts);
  CHECK(counts.drafted[9] == counts.rounds);
}

TEST_CASE("table: the draft length of the batch, 0 included", "[policy]") {
  for (const auto& [batch, length] : {std::pair<int, std::size_t>{1, 5}, {7, 5}, {8, 2}, {64, 0}}) {
    const decode::Counts counts = counts_of("{kind: table, table: [[1, 7, 5], [8, 63, 2], [64, 100000, 0]]}", batch);
    INFO("batch " << batch);
    CHECK(counts.drafted[length] == counts.rounds);
  }
}

}  // namespace specsim::batch_policies_test
