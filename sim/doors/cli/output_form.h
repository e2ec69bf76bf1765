// --format and --quiet, which every command has.
#pragma once

#include "sim/doors/cli/command.h"
#include "sim/doors/cli/command_line.h"
#include "sim/foundation/base/exit_code.h"

#include <string>
#include <vector>

namespace specsim::cli {

// Runs the command and writes its output in the form that the arguments request. Throws what the command throws; then nothing is
// printed.
ExitCode run_in_form(const Command& command, const std::vector<std::string>& arguments);

// Runs the command without warnings and progress, and returns its output as JSON (sim/foundation/report/document.h).
struct JsonOutput {
  ExitCode status = ExitCode::fine;
  std::string text;
};
JsonOutput run_for_json(const Command& command, const std::vector<std::string>& arguments);

// Whether the running command must be quiet: no warnings, no progress.
bool quiet();

// Whether a program reads the output, so that tables are never shortened.
bool for_machines();
// Whether only tables are printed, without the text around them (CSV), so that they must be self-contained.
bool tables_alone();

// Prints the words wrapped to the output's width.
void print_words(const std::string& words);

}  // namespace specsim::cli
