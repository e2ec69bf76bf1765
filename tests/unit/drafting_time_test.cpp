// Drafting time if rounds differ, and the inputs of policies if the draft is sure of its token.
#include "sim/rounds/draft/drafter.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace specsim::drafting_time_test {

namespace {

decode::Counts simulated(const std::string& experiment) {
  const tests::ReadyCell ready(experiment);
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  const std::uint64_t total = 4 * simulator.chunk_size();
  for (std::uint64_t chunk = 0; chunk < 4; ++chunk) simulator.run(chunk, total, counts);
  return counts;
}

}  // namespace

TEST_CASE("a batch takes as many passes of the draft as its slowest sequence", "[drafting]") {
  const auto drafting = [](double batch, const std::string& drafter, const std::vector<std::uint64_t>& drafted,
                           const decode::PassCounts& passes) {
    const spec::Experiment experiment = tests::experiment_of(fmt::format(
        "{{experiment: lockstep, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: uniform}}}}, decode: "
        "{{drafter: {}}}, cost: {{model: ratio, cost_ratio: 0.25}}, workload: {{batch: {}}}}}",
        drafter, batch));
    return experiment.cells[0].round_time(0.0, drafted, passes).draft.total() / 0.25;
  };
  // Half of the rounds take one pass, half two; all draft two tokens.
  decode::PassCounts passes(2);
  for (int i = 0; i < 500; ++i) {
    passes.add(std::vector<std::uint32_t>{1});
    passes.add(std::vector<std::uint32_t>{1, 1});
  }
  const std::vector<std::uint64_t> drafted = {0, 0, 1000};
  const std::string copies = "{kind: cs_drafting, draft_length: 2}, verifier: token";
  CHECK(drafting(1, copies, drafted, passes) == Approx(1.5));
  CHECK(drafting(2, copies, drafted, passes) == Approx(1.75));  // mutant: the mean at every batch
  CHECK(drafting(64, copies, drafted, passes) == Approx(2.0));
  // Nine rounds in ten copy 24 tokens without a pass; in one the model drafts three.
  std::vector<std::uint64_t> mixed(25, 0);
  mixed[3] = 100;
  mixed[24] = 900;
  const std::string hybrid = "{kind: hybrid, draft_length: 3}, verifier: tree_point_mass";
  CHECK(drafting(1, hybrid, mixed, {}) == Approx(0.3));
  CHECK(drafting(2, hybrid, mixed, {}) == Approx(3 * (1 - 0.81)));
}

TEST_CASE("a block that a policy ends early takes the pass over the whole block, in a batch and alone", "[drafting]") {
  for (const double batch : {1.0, 32.0}) {
    const spec::Experiment experiment = tests::experiment_of(fmt::format(
        "{{experiment: block, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: uniform}}}}, decode: {{drafter: "
        "{{kind: dspark, block_size: 5}}, verifier: token, policy: confidence}}, cost: {{model: affine, target_fixed_ms: 10, "
        "target_ms_per_token: 1, draft_fixed_ms: 2, draft_ms_per_token: 0.1}}, workload: {{batch: {}}}}}",
        batch));
    const spec::Cell& cell = experiment.cells[0];
    const auto time = [&](std::vector<std::uint64_t> drafted) { return cell.round_time(0.0, drafted); };
    const double whole = time({0, 0, 0, 0, 0, 1}).draft.total();
    CHECK(whole == Approx(1e-3 * (2 + 0.1 * 5 * batch)));
    CHECK(time({0, 1, 0, 0, 0, 0}).draft.total() == Approx(whole));  // mutant: a pass for each token
    CHECK(time({0, 1, 0, 0, 0, 0}).verify.total() == Approx(1e-3 * (10 + 2 * batch)));
    CHECK(time({0, 1, 0, 0, 0, 1}).verify.total() == Approx(1e-3 * (10 + 4 * batch)));  // each sequence has its own rows
  }
}

TEST_CASE("a greedy draft is as sure as its model, for policies that look", "[drafting]") {
  const auto drafted = [](const std::string& draft_sampling, const std::string& selection, const std::string& policy) {
    const decode::Counts counts = simulated(fmt::format(
        "{{experiment: sure, seed: 2, rounds: 100000, pair: {{vocab: 3, target: {{family: explicit, probabilities: [.5, .3, "
        ".2]}}, "
        "draft: {{family: explicit, probabilities: [.35, .34, .31]}}, draft_sampling: {}}}, decode: {{drafter: {{kind: chain, "
        "draft_length: 4, selection: {}}}, verifier: token, policy: {}}}}}",
        draft_sampling, selection, policy));
    std::uint64_t sum = 0;
    for (std::size_t nodes = 0; nodes < counts.drafted.size(); ++nodes) sum += nodes * counts.drafted[nodes];
    return static_cast<double>(sum) / static_cast<double>(counts.rounds);
  };
  // Mutant: the probability under the point mass that is drafted, 1, and its entropy, 0: four tokens in every round.
  for (const auto& [sampling, selection] : {std::pair{"{}", "argmax"}, {"{temperature: 0}", "sampled"}}) {
    INFO(sampling << " " << selection);
    CHECK(drafted(sampling, selection, "{kind: confidence, least: 0.4}") == 1.0);
    CHECK(drafted(sampling, selection, "{kind: confidence, least: 0.3}") == 4.0);
    CHECK(drafted(sampling, selection, "{kind: entropy, most: 1.0}") == 1.0);
    CHECK(drafted(sampling, selection, "{kind: entropy, most: 1.1}") == 4.0);
    CHECK(drafted(sampling, selection, "{kind: specdec_pp, head: draft, threshold: 0.1, shortest: 1}") ==
          2.0);  // the second is the first that it looks at
  }
}

}  // namespace specsim::drafting_time_test
