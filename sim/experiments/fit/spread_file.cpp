#include "sim/experiments/fit/spread_file.h"

#include <fmt/format.h>

namespace specsim::fit {

namespace {

// At temperature 0 a draft's token is its likeliest one, and trees consist of likeliest tokens.
bool chooses(const SpreadExperiment& experiment) { return experiment.temperature == 0.0 || experiment.chosen; }

std::string chain(const SpreadExperiment& experiment, int length) {
  return fmt::format("{{kind: chain, draft_length: {}{}}}", length, chooses(experiment) ? ", selection: argmax" : "");
}

std::string sampling(const SpreadExperiment& experiment) {
  if (experiment.temperature == 1.0) return "";
  if (experiment.temperature == 0.0) return "  target_sampling: {temperature: 0}\n";
  return fmt::format("  target_sampling: {{temperature: {0:g}}}\n  draft_sampling: {{temperature: {0:g}}}\n",
                     experiment.temperature);
}

std::string methods(const SpreadExperiment& experiment) {
  std::string list;
  const auto add = [&](const std::string& drafter, const char* verifier) {
    list += fmt::format("    - {{drafter: {}, verifier: {}}}\n", drafter, verifier);
  };
  for (const int length : {2, 4, 6}) add(chain(experiment, length), "token");
  if (!chooses(experiment)) {
    add(chain(experiment, 4), "block");
    add("{kind: tree_static, branching: [2, 2, 1, 1], siblings: without_replacement}", "without_replacement");
  }
  if (!experiment.trees) return list + experiment.left_out;
  if (chooses(experiment)) add("{kind: tree_static, branching: [2, 2, 1, 1], siblings: top_k}", "tree_point_mass");
  add("{kind: tree_dynamic, depth: 4, width: 4, nodes: 16}", "tree_point_mass");
  return list + experiment.left_out;
}

}  // namespace

std::string spread_experiment(const SpreadExperiment& experiment) {
  return fmt::format(
      "{}"
      "experiment: fitted_spread\n"
      "rounds: 100000\n"
      "pair:\n"
      "  vocab: {}\n"
      "  target: {{family: normal_logits, sigma: {:.6g}, spread: {:.6g}}}\n"
      "  draft: {{from: target, transform: logit_noise, value: {:.6g}, spread: {:.6g}}}\n"
      "{}"
      "{}"
      "decode:\n"
      "  drafter: {}\n"
      "  verifier: token\n"
      "# For specsim compare: put your GPU, models and methods here.\n"
      "cost: {{model: roofline, hardware: h100-sxm, target: llama-3.1-8b, draft: llama-3.2-1b}}\n"
      "workload: {{batch: 1, context_length: 512}}\n"
      "sweep:\n"
      "  workload.batch: [1, 8, 32]\n"
      "  decode:\n"
      "{}",
      experiment.heading, experiment.vocab, experiment.values.sigma, experiment.values.sigma_spread, experiment.values.noise,
      experiment.values.noise_spread, sampling(experiment), experiment.context, chain(experiment, 4), methods(experiment));
}

}  // namespace specsim::fit
