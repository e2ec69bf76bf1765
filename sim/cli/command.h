// The subcommands. Each reads its own options, prints, and returns the exit code: 0 fine, 1 disagreement or I/O failure,
// 2 bad input.
#pragma once

#include <string>
#include <vector>

namespace specsim::cli {

struct Command {
  std::string name;
  std::string summary;
  int (*run)(const std::vector<std::string>& arguments);
};

int run_command(const std::vector<std::string>& arguments);
int check_command(const std::vector<std::string>& arguments);
int audit_command(const std::vector<std::string>& arguments);
int plan_command(const std::vector<std::string>& arguments);
int compare_command(const std::vector<std::string>& arguments);
int theory_command(const std::vector<std::string>& arguments);
int pass_command(const std::vector<std::string>& arguments);
int calibrate_command(const std::vector<std::string>& arguments);
int validate_command(const std::vector<std::string>& arguments);
int fit_command(const std::vector<std::string>& arguments);
int list_command(const std::vector<std::string>& arguments);
int describe_command(const std::vector<std::string>& arguments);
int init_command(const std::vector<std::string>& arguments);
int plot_command(const std::vector<std::string>& arguments);
int merge_command(const std::vector<std::string>& arguments);
int reference_command(const std::vector<std::string>& arguments);

// Throws IoError where standard output does not take what was printed.
void flush_output();

// The line that was typed, for manifests.
const std::string& command_line();

}  // namespace specsim::cli
