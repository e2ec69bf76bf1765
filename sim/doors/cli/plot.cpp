// specsim plot: draws another command's results with the script for these files.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/resources.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

namespace specsim::cli {

namespace fs = std::filesystem;

namespace {

struct Script {
  const char* file;    // a file that only this command writes
  const char* script;  // the script that draws it
};
// The first entry that matches draws the folder.
constexpr std::array<Script, 7> kScripts = {{{"plan.csv", "plot_plan.py"},
                                             {"choices.csv", "plot_choose.py"},
                                             {"ranking.csv", "plot_compare.py"},
                                             {"validation.csv", "plot_validation.py"},
                                             {"curve.csv", "plot_serve.py"},
                                             {"requests.csv", "plot_serve.py"},
                                             {"data.csv", "plot_data.py"}}};

}  // namespace

ExitCode plot_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> folders;
  bool force = false;
  CommandLine line("specsim plot DIRECTORY...",
                   "  specsim plan --hardware h100-sxm --target llama-3.1-8b --draft llama-3.2-1b --alpha 0.7 --out out/plan\n"
                   "  specsim plot out/plan\n");
  line.add_words("directory", folders);
  line.add({{"force", force, "also replace other files at the picture's path"}});
  if (!line.read(arguments)) return ExitCode::fine;
  if (folders.empty())
    throw BadInput({"", 0, 0},
                   "specsim plot needs a directory, allowed: --out of run, check, merge, plan, compare, serve or validate");
  for (const std::string& folder : folders) {
    const Script* script = nullptr;
    std::string known;
    std::error_code ignored;
    for (const Script& one : kScripts) {
      if (script == nullptr && fs::is_regular_file(fs::path(folder) / one.file, ignored)) script = &one;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", one.file);
    }
    if (script == nullptr)
      throw BadInput({folder, 0, 0}, fmt::format("contains nothing to draw, allowed: a directory with {}", known));
    std::vector<std::string> words = {folder};
    if (force) words.emplace_back("--force");
    const int status = run_script(fmt::format("scripts/plots/{}", script->script), words);
    // The script has already reported the error.
    for (const ExitCode told : {ExitCode::bad_input, ExitCode::io_failed, ExitCode::interrupted})
      if (status == static_cast<int>(told)) return told;
    if (status != 0) throw IoError(fmt::format("{} ended with status {}", script->script, status));
  }
  return ExitCode::fine;
}

}  // namespace specsim::cli
