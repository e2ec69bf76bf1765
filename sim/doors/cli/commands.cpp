#include "sim/doors/cli/command.h"
#include "sim/doors/cli/command_line.h"

#include <string>

namespace specsim::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      {"run", "simulate the cells of one or more configs; table, data.csv, manifest.yaml", run_command},
      {"check", "the same, and the verdict of theory and simulation", check_command},
      {"audit", "exact enumeration of the shipped verifier on a small vocabulary", audit_command},
      {"plan", "the best draft length on a GPU, break-even points, and when not to speculate", plan_command},
      {"choose", "which GPUs to rent and how to set them up for a load: settings ranked by cost, speed or energy",
       choose_command},
      {"compare", "methods ranked on one workload, with paired intervals; the fastest tree drawn", compare_command},
      {"serve", "a server under load: latency, throughput and goodput, with speculation and without", serve_command},
      {"tune", "learn from benchmark runs of a server how it differs from the estimate", tune_command},
      {"theory", "closed forms at given parameters, without simulating", theory_command},
      {"pass", "latency of one forward pass on a GPU, part by part", pass_command},
      {"kernels", "measured kernels and their estimated latencies: the estimates' errors, by GPU and dtype", kernels_command},
      {"calibrate", "two real models: latency of passes, acceptance of drafts, speedup", calibrate_command},
      {"validate", "predict runs of other prompts from a calibration, and measure them", validate_command},
      {"import", "acceptance from the log or metrics of a server: vLLM, SGLang, llama.cpp, TensorRT-LLM", import_command},
      {"fit", "which context process reproduces recorded acceptance, and with which parameters", fit_command},
      {"list", "families, context processes, verifiers, cost models, GPUs, models, closed forms", list_command},
      {"describe", "one of these: its parameters, its distribution, its source (NAME or KIND/NAME)", describe_command},
      {"init", "the configs that come with the program, copied here to start from", init_command},
      {"cluster", "an experiment over many tasks: array jobs of Slurm, or processes of this machine", cluster_command},
      {"plot", "pictures of what run, check, plan, compare, serve or validate wrote", plot_command},
      {"merge", "join the results of shards", merge_command},
      {"schema", "the JSON Schema of configs, for editors", schema_command},
      {"completion", "completion of commands, options and names for bash, zsh or fish", completion_command},
      {"man", "the manual page", man_command},
      {"reference", "all of these as one page (docs/reference.md)", reference_command}};
  return list;
}

CommandInfo command_info(const Command& command) {
  const NoteCommandInfo noted;
  command.run({});
  return noted.info;
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}#~`!") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace specsim::cli
