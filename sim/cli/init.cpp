// specsim init: the configs that come with the program, to start one's own from.
#include "sim/base/error.h"
#include "sim/base/output.h"
#include "sim/base/whole_file.h"
#include "sim/cli/command.h"
#include "sim/cli/options.h"
#include "sim/cli/resources.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

namespace specsim::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

ExitCode init_command(const std::vector<std::string>& arguments) {
  po::options_description options;
  options.add_options()("force", "replace configs of the same name that are there");
  po::variables_map values;
  if (!parse(arguments, options, "directory", "specsim init [DIRECTORY] [--force]",
             "  specsim init                   # configs/ in this directory\n"
             "  specsim init mine && specsim check mine/configs/quickstart.yaml\n",
             values))
    return ExitCode::fine;
  std::vector<std::string> wanted = {"."};
  if (values.count("directory") > 0) wanted = values["directory"].as<std::vector<std::string>>();
  if (wanted.size() != 1) throw BadInput({"", 0, 0}, fmt::format("{} directories, allowed: one", wanted.size()));
  const fs::path to = fs::path(wanted.front()) / "configs";
  const std::string resources = resources_folder();
  if (resources.empty()) throw IoError("the configs that come with specsim are neither installed nor beside the program");
  const fs::path from = fs::path(resources) / "configs";

  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), from));
  std::error_code ignored;
  if (values.count("force") == 0)
    for (const fs::path& file : files)
      if (fs::exists(to / file, ignored))
        throw BadInput({(to / file).string(), 0, 0}, "is there already, allowed: another directory, or --force to replace it");
  for (const fs::path& file : files) {
    make_directories((to / file).parent_path().string());
    write_whole_file((to / file).string(), read_whole_file((from / file).string()));
  }
  print_output("wrote {} files to {}; try: specsim check {}\n", files.size(), to.string(), (to / "quickstart.yaml").string());
  return ExitCode::fine;
}

}  // namespace specsim::cli
