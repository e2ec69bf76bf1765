#include "sim/doors/cli/command.h"
#include "sim/foundation/base/error.h"
#include "tests/fuzz/fuzzers.h"

#include <algorithm>

namespace specsim::cli {

// Defined in sim/doors/cli/main.cpp, which is not part of these programs.
const std::string& command_line() {
  static const std::string line = "specsim";
  return line;
}

}  // namespace specsim::cli

namespace specsim::fuzz {

namespace {

// One argument per line. Both commands read presets and the given files, and print.
void feed(ExitCode (*command)(const std::vector<std::string>&), std::string_view bytes) {
  std::vector<std::string> arguments;
  while (!bytes.empty() && arguments.size() < 40) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    arguments.emplace_back(line.substr(0, line.find('\0')));
  }
  const ExitCode status = command(arguments);
  require(status == ExitCode::fine || status == ExitCode::bad_input, "a command that only reads is fine or refuses");
}

void feed_theory(std::string_view bytes) { feed(cli::theory_command, bytes); }
void feed_pass(std::string_view bytes) { feed(cli::pass_command, bytes); }

}  // namespace

const std::vector<Fuzzer>& command_fuzzers() {
  static const std::vector<Fuzzer> list = {{"theory", feed_theory}, {"pass", feed_pass}};
  return list;
}

}  // namespace specsim::fuzz
