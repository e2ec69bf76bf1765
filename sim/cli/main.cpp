#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/cli/command.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <boost/program_options/errors.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

namespace specsim::cli {

namespace {

std::string typed_line;

// As a shell would take it back.
std::string shell_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}#~`!") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      {"run", "simulate the cells of one or more configs; table, data.csv, manifest.yaml", run_command},
      {"check", "the same, and the verdict of theory against simulation", check_command},
      {"audit", "exact enumeration of the shipped verifier on a small vocabulary", audit_command},
      {"plan", "the best draft length on a GPU, break-even points, and when not to speculate", plan_command},
      {"compare", "methods ranked on one workload, with paired intervals; the fastest tree drawn", compare_command},
      {"theory", "closed forms at given parameters, without simulating", theory_command},
      {"pass", "what one forward pass takes on a GPU, part by part", pass_command},
      {"calibrate", "two real models: what passes cost, how often drafts are accepted, what it gives", calibrate_command},
      {"validate", "predict runs of other prompts from a calibration, and measure them", validate_command},
      {"fit", "which context process reproduces recorded acceptance, and with which parameters", fit_command},
      {"list", "families, context processes, verifiers, cost models, GPUs, models, closed forms", list_command},
      {"describe", "one of them: its parameters, its distribution, its source (NAME or KIND/NAME)", describe_command},
      {"init", "the configs that come with the program, copied here to start from", init_command},
      {"plot", "pictures of what run, check, plan, compare or validate wrote", plot_command},
      {"merge", "join the results of shards", merge_command},
      {"reference", "all of them as one page (docs/reference.md)", reference_command}};
  return list;
}

void print_usage(std::FILE* out) {
  fmt::print(out,
             "specsim {}: speculative decoding, simulated with the exact algorithm and held against theory\n\nusage: specsim "
             "COMMAND [options]\n\n",
             build_info::version);
  for (const Command& command : commands()) fmt::print(out, "  {:<10} {}\n", command.name, command.summary);
  fmt::print(out,
             "\nspecsim help COMMAND explains a command, with examples. Start with:\n"
             "  specsim check configs/quickstart.yaml\n");
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_usage(stderr);
    return 2;
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() > 1) return dispatch({arguments[1], "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    print_usage(stdout);
    return 0;
  }
  if (name == "--version") {
    fmt::print("specsim {} ({})\n", build_info::version, build_info::commit);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command.run({arguments.begin() + 1, arguments.end()});
    names.push_back(command.name);
  }
  const std::string near = nearest_name(name, names);
  fmt::print(stderr, "specsim: unknown command \"{}\"{} allowed: {}\n", name,
             near.empty() ? "," : fmt::format(", did you mean \"{}\"?", near), fmt::join(names, ", "));
  return 2;
}

}  // namespace

void flush_output() {
  if (std::fflush(stdout) != 0) throw IoError(std::string("standard output cannot be written: ") + std::strerror(errno));
}

const std::string& command_line() { return typed_line; }

}  // namespace specsim::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error like any other
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  specsim::cli::typed_line = "specsim";
  for (const std::string& argument : arguments) specsim::cli::typed_line += " " + specsim::cli::shell_word(argument);
  try {
    const int status = specsim::cli::dispatch(arguments);
    specsim::cli::flush_output();
    return status;
  } catch (const specsim::BadInput& bad) {
    fmt::print(stderr, "{}\n", bad.what());
    return 2;
  } catch (const boost::program_options::error& bad) {
    fmt::print(stderr, "specsim {}: {}\n", arguments.front(), bad.what());
    return 2;
  } catch (const specsim::IoError& failure) {
    fmt::print(stderr, "specsim: {}\n", failure.what());
    return 1;
  } catch (const std::system_error& failure) {  // the output is closed, no more threads: the system's, not ours
    fmt::print(stderr, "specsim: {}\n", failure.what());
    return 1;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "specsim: out of memory\n");
    return 1;
  } catch (const std::exception& broken) {
    fmt::print(stderr, "specsim: this should not happen, please report it: {}\n", broken.what());
    return 1;
  }
}
