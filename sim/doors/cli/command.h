// The subcommands. Each reads its own options, prints its results, and returns an exit code.
#pragma once

#include "sim/foundation/base/exit_code.h"

#include <string>
#include <vector>

namespace specsim::cli {

struct CommandInfo;

struct Command {
  std::string name;
  std::string summary;
  ExitCode (*run)(const std::vector<std::string>& arguments);
};

ExitCode run_command(const std::vector<std::string>& arguments);
ExitCode check_command(const std::vector<std::string>& arguments);
ExitCode audit_command(const std::vector<std::string>& arguments);
ExitCode plan_command(const std::vector<std::string>& arguments);
ExitCode choose_command(const std::vector<std::string>& arguments);
ExitCode compare_command(const std::vector<std::string>& arguments);
ExitCode serve_command(const std::vector<std::string>& arguments);
ExitCode tune_command(const std::vector<std::string>& arguments);
ExitCode theory_command(const std::vector<std::string>& arguments);
ExitCode pass_command(const std::vector<std::string>& arguments);
ExitCode kernels_command(const std::vector<std::string>& arguments);
ExitCode calibrate_command(const std::vector<std::string>& arguments);
ExitCode validate_command(const std::vector<std::string>& arguments);
ExitCode import_command(const std::vector<std::string>& arguments);
ExitCode fit_command(const std::vector<std::string>& arguments);
ExitCode list_command(const std::vector<std::string>& arguments);
ExitCode describe_command(const std::vector<std::string>& arguments);
ExitCode init_command(const std::vector<std::string>& arguments);
ExitCode cluster_command(const std::vector<std::string>& arguments);
ExitCode plot_command(const std::vector<std::string>& arguments);
ExitCode merge_command(const std::vector<std::string>& arguments);
ExitCode completion_command(const std::vector<std::string>& arguments);
ExitCode man_command(const std::vector<std::string>& arguments);
ExitCode schema_command(const std::vector<std::string>& arguments);
ExitCode reference_command(const std::vector<std::string>& arguments);

// `specsim kernel-formulas`, a hidden command that scripts/kernels/kernel_formulas.py starts.
// It writes a line of JSON with the available formulas. It reads a line of JSON from standard input (a kind of kernel, a GPU and
// the number of shapes), then the shapes as doubles, column after column. After that it reads a letter and seven figures as
// doubles, and answers in doubles. Letter t: microseconds of each shape by the formula. Letter c: the coordinates of each shape,
// grouped by shape.
ExitCode kernel_formulas_command();

// The options and words of a command.
CommandInfo command_info(const Command& command);

// All commands, in the order of the usage.
const std::vector<Command>& commands();

// The command line as typed, for manifests.
const std::string& command_line();

}  // namespace specsim::cli
