// specsim cluster: shards of an experiment as tasks of Slurm or of this machine, by the script that knows them.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/resources.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <filesystem>

namespace specsim::cli {

namespace fs = std::filesystem;

ExitCode cluster_command(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description description;
  const auto text = [] { return po::value<std::string>(); };
  description.add_options()("tasks", text(), "shards, each a share of every cell")(
      "out", text(), "directory on a file system that all tasks see")("set", po::value<std::vector<std::string>>()->composing(),
                                                                      "PATH=VALUE replaces a value of the configs")(
      "seed", text(), "seed in place of the configs'")("threads", po::value<std::string>()->default_value("1"),
                                                       "threads of a task where Slurm does not say (SLURM_CPUS_PER_TASK)")(
      "sbatch", po::value<std::vector<std::string>>()->composing(),
      "an option for every job, such as --sbatch=--partition=short")(
      "array", po::value<std::string>()->default_value("1000"), "most tasks in one array job: the site's MaxArraySize less 1")(
      "at-once", text(), "most tasks of an array that run together")("name", text(), "name of the jobs")(
      "force", "begin anew where --out holds other tasks")("dry-run",
                                                           "say what it would take and what is missing, submit nothing");
  po::variables_map values;
  if (!parse(arguments, description, "what",
             "specsim cluster slurm|local:N CONFIG... --tasks N --out DIR [options]; specsim cluster status DIR",
             "  specsim cluster slurm mine.yaml --tasks 500 --out out/mine --sbatch=--time=01:00:00\n"
             "  specsim cluster status out/mine\n"
             "  specsim cluster local:4 configs/quickstart.yaml --tasks 16 --out out/quickstart\n",
             values))
    return ExitCode::fine;
  if (for_machines())
    throw BadInput({"--format", 0, 0},
                   fmt::format("{}, allowed with cluster: table", config::quote_for_message(values["format"].as<std::string>())));
  const std::string resources = resources_folder();
  if (resources.empty()) throw IoError("the scripts that come with specsim are neither installed nor beside the program");
  flush_output();
  const int status = run_python((fs::path(resources) / "scripts/cluster.py").string(), arguments);
  switch (status) {
    case static_cast<int>(ExitCode::fine):
    case static_cast<int>(ExitCode::bad_input):
    case static_cast<int>(ExitCode::untested):
    case static_cast<int>(ExitCode::interrupted):
      return static_cast<ExitCode>(status);
    default:
      return ExitCode::io_failed;
  }
}

}  // namespace specsim::cli
