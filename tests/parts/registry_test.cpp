// Every drafter and policy of the registries, by their entries alone: a new one is audited without an edit here.
#include "sim/audit/audit.h"
#include "tests/support/cells.h"
#include "tests/support/samples.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <optional>
#include <string>

using namespace specsim;

namespace {

// nullopt where the parts do not go together.
std::optional<spec::Cell> cell_with(const std::string& drafter, const verify::VerifierEntry& verifier, const std::string& policy,
                                    const std::string& process) {
  const std::string text = fmt::format(
      "{{experiment: parts, seed: 20260117, pair: {{vocab: 3, target: {{family: dirichlet, concentration: 0.7}}, draft: {{from: "
      "target, transform: logit_noise, value: 1.5}}{}}}, context: {}, cost: {{model: ratio, cost_ratio: 0.1}}, decode: "
      "{{drafter: {}, verifier: {}{}}}}}",
      verifier.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : "", process, drafter, verifier.info.name,
      policy.empty() ? "" : ", policy: " + policy);
  Diagnostics diagnostics;
  const spec::Experiment experiment =
      spec::read_experiment(config::parse_text(text, "test", diagnostics), "test", {}, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  return experiment.cells.at(0);
}

// How many lossless verifiers take it; each is audited.
int audited(const std::string& drafter, const std::string& policy) {
  int taken = 0;
  for (const verify::VerifierEntry& verifier : verify::verifiers().entries()) {
    if (!verifier.lossless) continue;
    for (const char* process : {"{process: fixed}", "{process: markov}", "{process: copy, prompt_tokens: 3, fidelity: 0.7}"}) {
      const std::optional<spec::Cell> cell = cell_with(drafter, verifier, policy, process);
      if (!cell) continue;
      ++taken;
      INFO(drafter << ", " << verifier.info.name << ", " << policy << ", " << process);
      CHECK(audit::audit_cell(*cell).lossless());
    }
  }
  return taken;
}

}  // namespace

TEST_CASE("every drafter leaves the target's distribution alone, under every lossless verifier that takes it") {
  for (const draft::DrafterEntry& entry : draft::drafters().entries()) {
    int taken = 0;
    for (const std::string& sample : tests::samples_of(entry.info)) taken += audited(sample, "");
    INFO(entry.info.name);
    CHECK(taken > 0);
  }
}

TEST_CASE("every policy leaves the target's distribution alone, under every lossless verifier that takes it") {
  for (const draft::PolicyEntry& entry : draft::policies().entries()) {
    int taken = 0;
    for (const std::string& sample : tests::samples_of(entry.info)) taken += audited("{kind: chain, draft_length: 3}", sample);
    INFO(entry.info.name);
    CHECK(taken > 0);
  }
}
