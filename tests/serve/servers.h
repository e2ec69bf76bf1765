// Servers for tests, from a few lines of YAML.
#pragma once

#include "sim/answers/load/experiment.h"

#include <fmt/format.h>

#include <string>

namespace specsim::tests {

// Throws BadInput that lists every mistake.
inline load::ServeExperiment server(const std::string& yaml) {
  Diagnostics diagnostics;
  const config::Value config = config::parse_text(yaml, "test", diagnostics);
  load::ServeExperiment experiment = load::read_serve_experiment(config, "test", diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

inline load::ServeResult run_server(const load::ServeExperiment& experiment) {
  return load::serve(experiment, load::make_requests(experiment), {});
}

// An overloaded server with a small cache: it queues, cuts prompts and preempts.
inline std::string crowded(const std::string& more = "", const std::string& scheduler = "kind: vllm_v1, async: false") {
  return fmt::format(R"(seed: 5
serve:
  scheduler: {{{}, max_num_seqs: 24}}
  kv: {{block: 16, blocks: 160}}
  arrivals: {{process: gamma, rate: 40, burstiness: 0.5, requests: 150}}
  lengths: {{prompt: {{lognormal: {{mean: 120, cv: 1, most: 900}}}}, output: {{uniform: {{from: 1, to: 120}}}}}}
{}
cost: {{model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02, target_ms_per_kv_token: 0.0001, draft_fixed_ms: 1, draft_ms_per_token: 0.004}}
)",
                     scheduler, more);
}

inline std::string drafting(const std::string& policy, const std::string& acceptance) {
  return fmt::format("  speculation: {{policy: {{{}}}, acceptance: {{{}}}}}", policy, acceptance);
}

}  // namespace specsim::tests
