// Simulated blocks compared with the exact enumeration of the same round: the distribution of accepted, and the emitted tokens
// with the target. This links the addressed random words of a simulation to the rule that the audit runs.
#include "tests/exact/exact_cells.h"
#include "tests/support/block_mutants.h"

#include "sim/experiments/judge/agreement.h"

#include <numeric>

namespace specsim::blocks_test {

using namespace specsim::tests;

namespace {

constexpr double kLevel = 1e-6;
constexpr std::uint64_t kRounds = 200000;

struct Judged {
  double p_accepted = 1.0;
  double p_output = 1.0;
};

Judged judge_block(const spec::Cell& cell, const verify::BlockRule& simulated, const audit::AuditReport& exact) {
  decode::PreparationPlan plan = spec::plan_of(cell);
  std::get<decode::BlockJudging>(plan.judging).rule = &simulated;
  const decode::Prepared prepared = decode::prepare(plan, {});
  const decode::Simulator simulator(plan, prepared, spec::draw_key(cell), cell.draft_length(), cell.sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
  REQUIRE(counts.rounds == kRounds);
  const auto test = [](const std::vector<std::uint64_t>& counted, const Distribution& distribution) {
    std::vector<double> observed(counted.begin(), counted.end());
    const double n = std::accumulate(observed.begin(), observed.end(), 0.0);
    std::vector<double> expected;
    for (const double p : distribution) expected.push_back(n * p);
    judge::GTest g;
    g.add(observed, expected);
    return g.p();
  };
  return {test(counts.accepted_distribution, exact.starts[0].accepted_distribution),
          test(counts.output, prepared.classes[0].target_mass)};
}

spec::Cell cell_for(const verify::VerifierEntry& entry) {
  std::string drafter = chain(3);
  if (!entry.demands.trees.empty()) {
    const tokens::Siblings siblings = entry.demands.trees.front();
    drafter = fmt::format("{{kind: tree_static, branching: [2, {}, 1], siblings: {}}}", entry.demands.paths ? 1 : 2,
                          siblings == tokens::Siblings::independent           ? "sampled"
                          : siblings == tokens::Siblings::without_replacement ? "without_replacement"
                          : siblings == tokens::Siblings::hub                 ? "hub"
                                                                              : "top_k");
  }
  return cell_of(fmt::format("{{vocab: 3, target: {}, draft: {}{}}}", explicit_distribution({0.25, 0.375, 0.375}),
                             explicit_distribution({0.125, 0.125, 0.75}),
                             entry.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : ""),
                 "{process: fixed}", drafter, entry.info.name);
}

}  // namespace

TEST_CASE("simulated blocks agree with their exact distribution, and mutants do not") {
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (entry.make) continue;
    const spec::Cell cell = cell_for(entry);
    const audit::AuditReport exact = audit::audit_cell(cell);
    const Judged own = judge_block(cell, *cell.block()->verifier, exact);
    INFO(entry.info.name << ": p accepted " << own.p_accepted << ", p output " << own.p_output);
    CHECK(own.p_accepted > kLevel);
    if (entry.lossless) CHECK(own.p_output > kLevel);
  }
  for (const BlockMutant& mutant : block_mutants()) {
    const verify::VerifierEntry* entry = verify::verifiers().find(mutant.verifier);
    const spec::Cell cell = cell_for(*entry);
    const audit::AuditReport exact = audit::audit_cell(cell);
    const auto rule = mutant.make();
    const audit::AuditReport wrong = audit::audit_cell(cell, *rule);
    const double moved =
        std::max(largest_difference(wrong.starts[0].accepted_distribution, exact.starts[0].accepted_distribution),
                 largest_difference(wrong.starts[0].first_token, exact.starts[0].first_token));
    if (moved < 0.02) continue;  // detected on other distributions: see tests/exact
    const Judged judged = judge_block(cell, *rule, exact);
    INFO(mutant.verifier << ": " << mutant.mistake << ", moved by " << moved);
    CHECK(std::min(judged.p_accepted, judged.p_output) < kLevel);
  }
}

}  // namespace specsim::blocks_test
