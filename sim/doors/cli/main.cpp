#include "sim/doors/cli/command.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/shell_word.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"
#include "specsim_version.h"

#include <fmt/format.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

namespace specsim::cli {

namespace {

std::string typed_line;

std::string usage() {
  std::string text = fmt::format(
      "specsim {}: speculative decoding, simulated with the exact algorithm and checked against theory\n\nusage: specsim "
      "COMMAND [options]\n\n",
      build_info::version);
  for (const Command& command : commands()) text += fmt::format("  {:<11} {}\n", command.name, command.summary);
  return text +
         "\nspecsim help COMMAND explains a command, with examples. Start with:\n"
         "  specsim check configs/quickstart.yaml\n\n"
         "exit status: 0 fine; 1 simulation and theory disagree, or a claim does not hold; 2 bad input; 3 nothing disagrees, "
         "but\n"
         "  not every cell was tested as it should be (too few rounds, no theory); 4 the machine refused (full disk, unwritable\n"
         "  output, no memory); 5 a defect of this program; 6 interrupted, what was finished is kept in --out\n";
}

ExitCode dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    write_error(usage());
    return ExitCode::bad_input;
  }
  const std::string& name = arguments.front();
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && arguments.size() == 1) {
    write_output(usage());
    return ExitCode::fine;
  }
  if (name == "--version") {
    print_output("specsim {} ({})\n", build_info::version, build_info::commit);
    return ExitCode::fine;
  }
  if (name == "kernel-formulas") return kernel_formulas_command();
  const std::string& wanted = help ? arguments[1] : name;
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == wanted)
      return help ? command.run({"--help"}) : run_in_form(command, {arguments.begin() + 1, arguments.end()});
    names.push_back(command.name);
  }
  print_error("specsim: {}\n", config::unknown_name("unknown command", wanted, names));
  return ExitCode::bad_input;
}

// Returns the command's own exit code, unless standard output failed.
ExitCode run(const std::vector<std::string>& arguments) {
  const ExitCode status = dispatch(arguments);
  const bool read = check_output();
  return !read && status == ExitCode::fine && whole_files_written() == 0 ? ExitCode::io_failed : status;
}

// Allocates no memory, so nothing is formatted here.
ExitCode tell_out_of_memory() {
  constexpr std::string_view kSaid = "specsim: out of memory\n";
  static_cast<void>(!write(STDERR_FILENO, kSaid.data(), kSaid.size()));  // if this write fails there is nothing left to try
  return ExitCode::io_failed;
}

// Called if memory runs out during cleanup or while a message is made: then no handler gets the exception.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    remove_unfinished_files();
    _exit(static_cast<int>(tell_out_of_memory()));
  } catch (...) {
  }
  std::abort();
}

ExitCode run_and_tell(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const BadInput& bad) {
    flush_output();
    print_error("{}\n", bad.what());
    return ExitCode::bad_input;
  } catch (const InvariantBroken& broken) {
    print_error("specsim: this should not happen, please report it: {}\n", broken.what());
    return ExitCode::internal_error;
  } catch (const IoError& failure) {
    print_error("specsim: {}\n", failure.what());
    return ExitCode::io_failed;
  } catch (const std::system_error& failure) {  // no more threads: a system limit, not a defect
    print_error("specsim: {}\n", failure.what());
    return ExitCode::io_failed;
  } catch (const std::bad_alloc&) {
    return tell_out_of_memory();
  } catch (const std::exception& broken) {
    print_error("specsim: this should not happen, please report it: {}\n", broken.what());
    return ExitCode::internal_error;
  }
}

// Runs `work` with a large stack. With a smaller `ulimit -s`, deep recursion would overflow the stacks of the program and its
// threads.
void with_deep_stack(const std::function<void()>& work) {
  constexpr std::size_t kEnough = std::size_t{8} << 20U;
  constexpr std::size_t kLeast = std::size_t{1} << 20U;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return work();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kEnough);
  pthread_setattr_default_np(&attributes);  // for threads created later
  pthread_attr_destroy(&attributes);
  std::thread(work).join();
}

}  // namespace

const std::string& command_line() { return typed_line; }

}  // namespace specsim::cli

int main(int argc, char** argv) {
  std::set_terminate(specsim::cli::end_without_memory);
  specsim::guard_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  specsim::cli::end_without_pieces();
  std::signal(SIGXFSZ, SIG_IGN);  // makes a file-size limit an ordinary write error
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  specsim::cli::typed_line = "specsim";
  for (const std::string& argument : arguments) specsim::cli::typed_line += " " + specsim::shell_word(argument);
  specsim::ExitCode status = specsim::ExitCode::fine;
  specsim::cli::with_deep_stack([&] { status = specsim::cli::run_and_tell(arguments); });
  return static_cast<int>(status);
}
