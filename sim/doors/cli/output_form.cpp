#include "sim/doors/cli/output_form.h"

#include "sim/doors/cli/command_reference.h"
#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/document.h"
#include "sim/foundation/report/table.h"
#include "specsim_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace specsim::cli {

namespace {

// The requested form of output.
struct Form {
  bool quiet = false;
  report::Format format = report::Format::table;
};
Form& form() { return context().of<Form>(); }

// The last value of --format among the arguments, as "--format json" or "--format=json"; nullopt if there is none.
std::optional<std::string> format_of(const std::vector<std::string>& arguments) {
  const std::string option = "--format";
  std::optional<std::string> format;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) format = arguments[i + 1];
    if (arguments[i].starts_with(option + "=")) format = arguments[i].substr(option.size() + 1);
  }
  return format;
}

bool given(const std::vector<std::string>& arguments, const char* option) {
  return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
}

// Runs the command and converts its output.
JsonOutput run_and_form(const Command& command, const std::vector<std::string>& arguments, report::Format format, bool hides) {
  const report::Document document;
  JsonOutput output;
  form().format = format;
  output.status = command.run(arguments);
  form().format = report::Format::table;
  std::vector<std::string> typed = {command.name};
  typed.insert(typed.end(), arguments.begin(), arguments.end());
  output.text =
      document.written(format, {build_info::version, build_info::commit, typed, static_cast<int>(output.status)}, hides);
  return output;
}

}  // namespace

bool quiet() { return form().quiet; }

bool for_machines() { return form().format != report::Format::table; }

bool tables_alone() { return form().format == report::Format::csv; }

ExitCode run_in_form(const Command& command, const std::vector<std::string>& arguments) {
  const std::string name = format_of(arguments).value_or("table");
  const std::optional<report::Format> format = report::format_named(name);
  if (!format)
    throw BadInput({"--format", 0, 0},
                   fmt::format("{}, allowed: {}", config::quote_for_message(name), fmt::join(report::format_names(), ", ")));
  if (command.name == "reference" && *format == report::Format::json && !given(arguments, "--help") && !given(arguments, "-h")) {
    write_output(command_reference());
    return ExitCode::fine;
  }
  form().quiet = given(arguments, "--quiet");
  // With --quiet these commands still print what the user explicitly requested: the verdict, or the table of `pass --csv`.
  const bool own_quiet = command.name == "run" || command.name == "check" || given(arguments, "--csv");
  const bool hides = quiet() && !own_quiet;
  if (given(arguments, "--help") || given(arguments, "-h") || (*format == report::Format::table && !hides))
    return command.run(arguments);
  const JsonOutput output = run_and_form(command, arguments, *format, hides);
  write_output(output.text);
  return output.status;
}

JsonOutput run_for_json(const Command& command, const std::vector<std::string>& arguments) {
  form().quiet = true;
  return run_and_form(command, arguments, report::Format::json, false);
}

void print_words(const std::string& words) {
  for (const std::string& line : report::wrap_words(words, output_width())) print_output("{}\n", line);
}

}  // namespace specsim::cli
