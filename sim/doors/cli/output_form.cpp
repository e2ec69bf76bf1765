#include "sim/doors/cli/output_form.h"

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

// How the command was asked to print, and who only asks for its options.
struct Form {
  bool quiet = false;
  report::Format format = report::Format::table;
  CommandInfo* noting = nullptr;
};
Form& form() { return context().of<Form>(); }

// The last value of --format among the arguments, as "--format json" or "--format=json"; nothing where it is not given so.
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

// Runs the command and forms what it prints.
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

CommandInfo command_info(const Command& command) {
  CommandInfo info;
  form().noting = &info;
  command.run({});
  form().noting = nullptr;
  return info;
}

bool note_options(const boost::program_options::options_description& options, const std::string& positional,
                  const std::string& usage, const std::string& examples) {
  CommandInfo* const noting = form().noting;
  if (noting == nullptr) return false;
  noting->usage = usage;
  noting->examples = examples;
  noting->takes_files = !positional.empty();
  for (const auto& option : options.options()) {
    const auto semantic = option->semantic();
    OptionInfo one;
    one.name = option->long_name();
    one.takes_value = semantic->max_tokens() > 0;
    one.repeats = semantic->is_composing();
    const std::string parameter = option->format_parameter();  // "arg (=0)"
    const std::size_t from = parameter.find("(=");
    if (from != std::string::npos) one.fallback = parameter.substr(from + 2, parameter.rfind(')') - from - 2);
    one.help = option->description();
    noting->options.push_back(std::move(one));
  }
  return true;
}

void add_form_options(boost::program_options::options_description& options) {
  namespace po = boost::program_options;
  options.add_options()("format", po::value<std::string>()->default_value("table"),
                        fmt::format("form of what is printed: {}", fmt::join(report::format_names(), ", ")).c_str());
  if (options.find_nothrow("quiet", false) == nullptr)
    options.add_options()("quiet", "print no text, no warnings and no progress; tables alone with --format");
}

ExitCode run_in_form(const Command& command, const std::vector<std::string>& arguments) {
  const std::string name = format_of(arguments).value_or("table");
  const std::optional<report::Format> format = report::format_named(name);
  if (!format)
    throw BadInput({"--format", 0, 0},
                   fmt::format("{}, allowed: {}", config::quote_for_message(name), fmt::join(report::format_names(), ", ")));
  form().quiet = given(arguments, "--quiet");
  // These print nothing but what was asked for under --quiet: the verdict, and the table of `pass --csv`.
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
