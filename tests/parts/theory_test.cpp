// The oracle reads parameters of verifiers, drafters and policies by name, since it shares no code with them. Each of its
// theories is run on the parts that it names, so that every such name is looked up.
#include "sim/experiments/judge/agreement.h"
#include "sim/experiments/judge/cell_theory.h"
#include "tests/parts/part_cells.h"
#include "tests/support/cells.h"
#include "tests/support/samples.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::theory_test {

namespace {

constexpr const char* kProcess = "{process: fixed}";

// The registry's samples, and one more of spec_exec whose search keeps all open nodes, since its theory covers no narrower one.
std::vector<std::string> drafter_samples(const draft::DrafterEntry& drafter) {
  std::vector<std::string> samples = tests::samples_of(drafter.info);
  if (drafter.info.name == "spec_exec") samples.emplace_back("{kind: spec_exec, budget: 3, beams: 3, width: 2, max_depth: 2}");
  return samples;
}

// The theory of dspark, dflash2 and domino is for contexts that move; in constant contexts their rounds are a chain's.
const char* process_of(const draft::DrafterEntry& drafter) {
  const std::string& name = drafter.info.name;
  return name == "dspark" || name == "dflash2" || name == "domino" ? "{process: markov, order: 1}" : kProcess;
}

}  // namespace

// Mutant: `delta` of relaxed_top_n, or `window` of lookahead, renamed in its own file and not in sim/experiments/judge.
TEST_CASE("every theory answers for each of the verifiers and drafters that it names") {
  std::set<std::pair<std::string, std::string>> answered;  // theory, and verifier or drafter
  for (const verify::VerifierEntry& verifier : verify::verifiers().entries())
    for (const std::string& verifier_text : tests::samples_of(verifier.info))
      for (const draft::DrafterEntry& drafter : draft::drafters().entries())
        for (const std::string& drafter_text : drafter_samples(drafter)) {
          const auto cell = tests::cell_with(drafter_text, verifier, verifier_text, "", process_of(drafter));
          std::string why;
          const judge::TheoryEntry* const theory = cell ? judge::theory_entry(*cell, why) : nullptr;
          if (theory == nullptr) continue;
          INFO(theory->info.name << ", " << drafter_text << ", " << verifier_text);
          const tests::ReadyCell ready(*cell);
          constexpr std::uint64_t kRounds = 2;  // few enough that every text can be followed
          if (!judge::predict_exact(ready.cell(), ready.facts(), kRounds).known) continue;
          answered.insert({theory->info.name, verifier.info.name});
          answered.insert({theory->info.name, drafter.info.name});
        }
  for (const judge::TheoryEntry& theory : judge::theories().entries()) {
    INFO(theory.info.name);
    for (const auto* const names : {&theory.verifiers, &theory.drafters})
      for (const std::string& name : *names) {
        INFO(name);
        CHECK(answered.contains({theory.info.name, name}));
      }
  }
}

namespace {

// Whether theory covers the cell; if so, the simulation must agree with it.
bool borne_out(const spec::Cell& cell) {
  constexpr std::uint64_t kRounds = 4000;
  constexpr double kLevel = 1e-6;
  std::string why;
  if (judge::theory_entry(cell, why) == nullptr) return false;
  const tests::ReadyCell ready(cell);
  const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), kRounds);
  if (!prediction.known) return false;
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < kRounds; ++i) simulator.run(i, kRounds, counts);
  const judge::Agreement agreement = judge::judge_cell(ready.cell(), ready.facts(), prediction, counts, kLevel);
  CHECK(agreement.p_tokens_per_round > kLevel);
  CHECK_FALSE(agreement.p_accepted_distribution < kLevel);
  CHECK_FALSE(agreement.p_output_distribution < kLevel);
  return true;
}

}  // namespace

// Mutant: drafts that are guessed from the context before the block are treated as drafts of their own positions, in a process
// where every position is fresh: medusa, parallel and dflash get more tokens than a chain.
TEST_CASE("what theories say of fresh distributions is what is simulated", "[stat]") {
  int answered = 0;
  for (const verify::VerifierEntry& verifier : verify::verifiers().entries())
    for (const draft::DrafterEntry& drafter : draft::drafters().entries()) {
      const std::string drafter_text = drafter_samples(drafter).front();
      const auto cell = tests::cell_with(drafter_text, verifier, tests::samples_of(verifier.info).front(), "",
                                         "{process: iid, fresh: true, sequence_rounds: 16}");
      INFO(drafter_text << ", verifier " << verifier.info.name);
      if (cell && borne_out(*cell)) ++answered;
    }
  CHECK(answered > 40);
}

// Mutants: every block as long as the longest (greedy_multi_path under any policy), every accepted token taken for token 0
// (optimal_transport under confidence), bonus tokens of lossy rules after the longest blocks alone.
TEST_CASE("what theories say of chains that a policy cuts is what is simulated") {
  int answered = 0;
  for (const char* const drafter : {"{kind: chain, draft_length: 3}", "{kind: chain, draft_length: 3, selection: argmax}"})
    for (const char* const policy : {"{kind: confidence, least: 0.4}", "{kind: entropy, most: 0.8}",
                                     "{kind: additive, first: 1, up: 1, down: 1}", "{kind: ratio_tiers, tiers: [1, 2]}"})
      for (const char* const process : {"{process: fixed, sequence_rounds: 4}", "{process: iid, pool: 2, sequence_rounds: 4}",
                                        "{process: markov, sequence_rounds: 4}"})
        for (const verify::VerifierEntry& verifier : verify::verifiers().entries()) {
          const auto cell = tests::cell_with(drafter, verifier, tests::samples_of(verifier.info).front(), policy, process);
          INFO(drafter << ", " << policy << ", " << process << ", verifier " << verifier.info.name);
          if (cell && borne_out(*cell)) ++answered;
        }
  CHECK(answered > 300);
}

// Mutant: `warm_up` of ema_tiers, or `least` of confidence, renamed in its own file and not in sim/experiments/judge.
TEST_CASE("every theory of a policy answers for the policy's defaults and its example") {
  const verify::VerifierEntry& token = *verify::verifiers().find("token");
  for (const judge::PolicyTheory& theory : judge::policy_theories().entries()) {
    INFO(theory.info.name);
    const draft::PolicyEntry* const policy = draft::policies().find(theory.info.name);
    REQUIRE(policy != nullptr);
    std::vector<std::string> samples = tests::samples_of(policy->info);
    samples.push_back("{kind: " + theory.info.name + "}");
    int read = 0;
    for (const std::string& sample : samples) {
      const auto cell = tests::cell_with(tests::kPartsChain, token, "token", sample, kProcess);
      if (!cell) continue;
      ++read;
      if (theory.lengths) CHECK_NOTHROW(theory.lengths(*cell));
      if (theory.stops) CHECK_NOTHROW(theory.stops(cell->policy()->arguments, 0.5, 0.5));
    }
    CHECK(read > 0);
  }
}

}  // namespace specsim::theory_test
