// Cells for parts that a test knows only by their registry entries.
#pragma once

#include "sim/rounds/verify/verifier.h"
#include "tests/support/cells.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace specsim::tests {

constexpr const char* kPartsChain = "{kind: chain, draft_length: 3}";

// A cell over a vocabulary of 3 tokens; the parts as in a config, `policy` may be empty. `verifier`: the entry that
// `verifier_text` names. nullopt if the parts are not compatible.
inline std::optional<spec::Cell> cell_with(const std::string& drafter, const verify::VerifierEntry& verifier,
                                           const std::string& verifier_text, const std::string& policy,
                                           const std::string& process) {
  const std::string text = fmt::format(
      "{{experiment: parts, seed: 20260117, pair: {{vocab: 3, target: {{family: dirichlet, concentration: 0.7}}, draft: {{from: "
      "target, transform: logit_noise, value: 1.5}}{}}}, context: {}, cost: {{model: ratio, cost_ratio: 0.1}}, decode: "
      "{{drafter: {}, verifier: {}{}}}}}",
      verifier.demands.one_hot_target ? ", target_sampling: {temperature: 0}" : "", process, drafter, verifier_text,
      policy.empty() ? "" : ", policy: " + policy);
  Diagnostics diagnostics;
  const spec::Experiment experiment =
      spec::read_experiment(config::parse_text(text, "test", diagnostics), "test", {}, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  return experiment.cells.at(0);
}

}  // namespace specsim::tests
