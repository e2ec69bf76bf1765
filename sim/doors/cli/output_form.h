// --format and --quiet, which every command has.
#pragma once

#include "sim/doors/cli/command.h"
#include "sim/doors/cli/command_line.h"
#include "sim/foundation/base/exit_code.h"

#include <string>
#include <vector>

namespace specsim::cli {

// What a command takes.
CommandInfo command_info(const Command& command);

// Runs the command and writes what it prints in the form that the arguments ask for. Throws what the command throws; nothing is
// printed then.
ExitCode run_in_form(const Command& command, const std::vector<std::string>& arguments);

// Runs the command without warnings and progress, and returns what it prints as JSON (sim/foundation/report/document.h).
struct JsonOutput {
  ExitCode status = ExitCode::fine;
  std::string text;
};
JsonOutput run_for_json(const Command& command, const std::vector<std::string>& arguments);

// Whether the command that runs was asked to be quiet: no warnings, no progress.
bool quiet();

// Whether what is printed is read by a program, so that tables are whole however long.
bool for_machines();
// Whether tables are all that is printed, without the text around them (CSV), so that they have to say everything themselves.
bool tables_alone();

// Prints the words in lines that fit the output's width.
void print_words(const std::string& words);

}  // namespace specsim::cli
