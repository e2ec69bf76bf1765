// specsim init: three questions and a new config, or the configs that come with the program.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/named_parts.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/resources.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

namespace specsim::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOwnConfig = "experiment.yaml";

std::vector<std::string> names_of(const std::string& kind) {
  std::vector<std::string> names;
  for (const NamedPart& part : named_parts())
    if (part.kind == kind) names.push_back(part.info.name);
  return names;
}

// Reads a line of standard input without its end; false at the end of input. Throws BadInput if the line is too long.
bool read_line(std::string& line) {
  constexpr std::size_t kLongest = 4096;
  line.clear();
  for (int letter = std::cin.get(); letter != std::char_traits<char>::eof(); letter = std::cin.get()) {
    if (letter == '\n') return true;
    if (line.size() == kLongest)
      throw BadInput({"standard input", 0, 0}, fmt::format("an answer is longer than {} bytes, allowed: a line", kLongest));
    line += static_cast<char>(letter);
  }
  return !line.empty();
}

// Asks until the answer is one of `allowed`; an empty answer means `usual`. At a terminal a wrong answer leads to another
// question; otherwise it is rejected. Throws BadInput.
std::string ask(const std::string& question, const std::string& usual, const std::vector<std::string>& allowed) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  while (true) {
    print_output("{} [{}] ", question, usual);
    flush_output();
    std::string answer;
    if (!read_line(answer)) {
      print_output("\n");
      throw BadInput({"standard input", 0, 0},
                     fmt::format("it ended before an answer to \"{}\", allowed: three answers", question));
    }
    if (!terminal) print_output("{}\n", answer);
    answer.erase(answer.find_last_not_of(" \t\r") + 1);
    answer.erase(0, answer.find_first_not_of(" \t"));
    if (answer.empty()) return usual;
    if (std::find(allowed.begin(), allowed.end(), answer) != allowed.end()) return answer;
    const std::string wrong = not_among(config::quote_for_message(answer) + " is none of them", answer, allowed);
    if (!terminal) throw BadInput({"standard input", 0, 0}, wrong);
    print_output("{}\n", wrong);
  }
}

std::string own_config(const std::string& hardware, const std::string& target, const std::string& draft) {
  const bool heads = draft == "none";
  return fmt::format(
      "# Written by specsim init: {} on {}{}.\n"
      "#   specsim check {}      simulation against theory\n"
      "#   specsim plan {}       the best draft length, and the server's flags\n"
      "# Every key is explained by specsim reference; names by specsim list and specsim describe.\n"
      "experiment: mine\n"
      "seed: 1                          # seed of all random numbers\n"
      "rounds: 200000                   # per cell; more rounds narrow the intervals\n"
      "pair:\n"
      "  # Contexts as in natural language: entropy and the draft's accuracy differ between contexts.\n"
      "  vocab: 1000\n"
      "  target: {{family: normal_logits, sigma: 8, spread: 0.4}}\n"
      "  # How often drafts are accepted: value 0.6 is .86, 1 .77, 1.3 .72, 1.7 .65, 2.3 .57, 3 .49. Put your own figure here: "
      "specsim\n"
      "  # import reads the rate from a server's log.\n"
      "  draft: {{from: target, transform: logit_noise, value: 1.3, spread: 0.7}}\n"
      "context: {{process: iid, pool: 1024}}\n"
      "decode:\n"
      "  drafter: {{kind: chain, draft_length: 3}}\n"
      "  verifier: token                # specsim list verifier\n"
      "cost:\n"
      "  model: roofline\n"
      "  hardware: {}\n"
      "  target: {}\n"
      "  draft: {}{}\n"
      "workload: {{batch: 8, context_length: 2048}}\n"
      "# One cell for each value, or each pair of values:\n"
      "# sweep:\n"
      "#   decode.drafter.draft_length: [1, 2, 3, 4, 5, 6]\n"
      "#   workload.batch: [1, 8, 32]\n",
      target, hardware, heads ? ", drafted without a model" : fmt::format(", drafted by {}", draft), kOwnConfig, kOwnConfig,
      hardware, target, draft, heads ? "                    # n-grams, or heads inside the target" : "");
}

// Checks that the config can be written. An existing file is replaced only on request, a link or a pipe never. Throws BadInput.
// `base`: the named directory; a link below it leads elsewhere, and is not followed.
void check_place(const fs::path& base, const fs::path& file, bool force) {
  std::error_code ignored;
  for (fs::path folder = file.parent_path(); folder != base && folder.has_relative_path(); folder = folder.parent_path())
    if (fs::is_symlink(fs::symlink_status(folder, ignored)))
      throw BadInput({folder.string(), 0, 0}, "is a symbolic link, allowed: another directory, or none of this name there");
  const fs::file_status found = fs::symlink_status(file, ignored);
  if (fs::exists(found) && !fs::is_regular_file(found))
    throw BadInput({file.string(), 0, 0}, "is no regular file, allowed: another directory, or none of this name there");
  for (const std::string& name : {file.string(), file.string() + ".part"})
    if (!force && fs::exists(fs::symlink_status(name, ignored)))
      throw BadInput({name, 0, 0}, "exists already, allowed: another directory, or --force to replace it");
  for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    const fs::file_status above = fs::status(folder, ignored);
    if (fs::exists(above) && !fs::is_directory(above))
      throw BadInput({folder.string(), 0, 0}, "is no directory, allowed: another directory, or none of this name there");
    if (folder == folder.parent_path()) break;
  }
}

ExitCode write_own(bool force) {
  check_place("", kOwnConfig, force);
  std::vector<std::string> drafts = names_of("model");
  drafts.emplace_back("none");
  const std::string hardware = ask("GPU (specsim list hardware)?", "h100-sxm", names_of("hardware"));
  const std::string target = ask("Target model (specsim list model)?", "llama-3.1-8b", names_of("model"));
  const std::string draft = ask("Draft model, or none for n-grams and heads?", "llama-3.2-1b", drafts);
  write_whole_file(kOwnConfig, own_config(hardware, target, draft));
  print_output("wrote {0}; try: specsim check {0}, specsim plan {0}\n", kOwnConfig);
  return ExitCode::fine;
}

}  // namespace

ExitCode init_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> directories;
  bool force = false;
  bool asks = false;
  CommandLine line(
      "specsim init [DIRECTORY] [--ask] [--force]",
      "  specsim init                   # at a terminal: three questions, and experiment.yaml; else configs/ in this "
      "directory\n"
      "  specsim init mine && specsim check mine/configs/quickstart.yaml\n");
  line.add_words("directory", directories);
  line.add(
      {{"force", force, "replace existing configs of the same name"},
       {"ask", asks, "ask for GPU, target and draft and write experiment.yaml; the default at a terminal without a directory"}});
  if (!line.read(arguments)) return ExitCode::fine;
  const bool named = !directories.empty();
  if (!named) directories = {"."};
  if (directories.size() != 1) throw BadInput({"", 0, 0}, fmt::format("{} directories, allowed: one", directories.size()));
  if (asks && named) throw BadInput({"--ask", 0, 0}, "given together with a directory, allowed: one of them");
  if (asks || (!named && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)) return write_own(force);
  const fs::path base = directories.front();
  const fs::path to = base / "configs";
  const std::string resources = resources_folder();
  if (resources.empty()) throw IoError("the configs that come with specsim are neither installed nor next to the program");
  const fs::path from = fs::path(resources) / "configs";

  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), from));
  for (const fs::path& file : files) check_place(base, to / file, force);
  for (const fs::path& file : files) {
    make_directories((to / file).parent_path().string());
    write_whole_file((to / file).string(), read_whole_file((from / file).string()));
  }
  print_output("wrote {} files to {}; try: specsim check {}\n", files.size(), to.string(), (to / "quickstart.yaml").string());
  return ExitCode::fine;
}

}  // namespace specsim::cli
