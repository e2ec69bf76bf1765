// --format and --quiet, which every command has.
#pragma once

#include "sim/doors/cli/command.h"
#include "sim/foundation/base/exit_code.h"

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace specsim::cli {

// Adds --format, and --quiet where the command does not declare one itself.
void add_form_options(boost::program_options::options_description& options);

// What a command takes, from the same declarations that its --help prints.
struct OptionInfo {
  std::string name;
  bool takes_value = false;
  bool repeats = false;
  std::string fallback;  // its default, "" for none
  std::string help;
};
struct CommandInfo {
  std::string usage;
  std::string examples;
  bool takes_files = false;  // what stands without a dash
  std::vector<OptionInfo> options;
};
CommandInfo command_info(const Command& command);
// parse() tells of the options that a command declares. True while command_info() asks for them: they are noted, and the command
// is to return without doing anything.
bool note_options(const boost::program_options::options_description& options, const std::string& positional,
                  const std::string& usage, const std::string& examples);

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
