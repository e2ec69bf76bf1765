#include "sim/doors/cli/command.h"
#include "sim/doors/cli/command_line.h"

#include <string>

namespace specsim::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      {"run", "Simulates the cells of one or more configs and writes data.csv with a manifest.", run_command},
      {"check", "Simulates the cells of configs and states whether theory and simulation agree.", check_command},
      {"audit", "Enumerates the shipped verifier exactly on a small vocabulary.", audit_command},
      {"plan", "Finds the best draft length on a GPU, the break-even points, and when not to speculate.", plan_command},
      {"choose", "Ranks GPUs and their settings for a load by cost, speed or energy.", choose_command},
      {"compare", "Ranks methods on one workload, with paired intervals, and draws the fastest tree.", compare_command},
      {"serve", "Simulates a server under load, with speculation and without: latency, throughput, goodput.", serve_command},
      {"tune", "Learns from benchmark runs of a server how it differs from the estimate.", tune_command},
      {"theory", "Evaluates the closed forms at given parameters, without a simulation.", theory_command},
      {"pass", "Estimates the latency of one forward pass on a GPU, part by part.", pass_command},
      {"kernels", "Compares measured kernels with their estimated latencies, by GPU and type.", kernels_command},
      {"calibrate", "Measures two real models: latency of passes, acceptance of drafts, speedup.", calibrate_command},
      {"validate", "Predicts runs of other prompts from a calibration, and measures them.", validate_command},
      {"import", "Reads the acceptance from logs, metrics or answers of a server.", import_command},
      {"fit", "Finds the context process and parameters that reproduce recorded acceptance.", fit_command},
      {"list", "Lists families, context processes, methods, GPUs, models and closed forms.", list_command},
      {"describe", "Describes one of these, or a model's files: parameters, distribution, source.", describe_command},
      {"init", "Copies example configs to start from, or asks for your server and writes a config for it.", init_command},
      {"cluster", "Runs an experiment as many tasks: array jobs of Slurm, or processes of this machine.", cluster_command},
      {"plot", "Draws what run, check, plan, choose, compare, serve or validate wrote.", plot_command},
      {"merge", "Joins the results of shards.", merge_command},
      {"schema", "Prints the JSON Schema of configs, for editors.", schema_command},
      {"completion", "Prints the completion of commands, options and names for bash, zsh or fish.", completion_command},
      {"man", "Prints the manual page.", man_command},
      {"reference", "Prints everything as one page (docs/reference.md).", reference_command}};
  return list;
}

CommandInfo command_info(const Command& command) {
  const NoteCommandInfo noted;
  command.run({});
  return noted.info;
}

}  // namespace specsim::cli
