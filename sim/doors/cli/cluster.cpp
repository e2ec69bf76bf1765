// specsim cluster: runs shards of an experiment as tasks of Slurm or of this machine, with the script scripts/cluster.py.
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/resources.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/output.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

namespace specsim::cli {

ExitCode cluster_command(const std::vector<std::string>& arguments) {
  // The script interprets these options; they are declared and checked here.
  std::vector<std::string> what;
  std::vector<std::string> sets;
  std::vector<std::string> of_jobs;
  std::string text;
  std::string threads = "1";
  std::string array = "1000";
  bool flag = false;
  CommandLine line("specsim cluster slurm|local:N CONFIG... --tasks N --out DIR [options]; specsim cluster status DIR",
                   "  specsim cluster slurm mine.yaml --tasks 500 --out out/mine --sbatch=--time=01:00:00\n"
                   "  specsim cluster status out/mine\n"
                   "  specsim cluster local:4 configs/quickstart.yaml --tasks 16 --out out/quickstart\n");
  line.add_words("what", what);
  line.add({{"tasks", text, "shards, each a share of every cell"},
            {"out", text, "directory on a file system that all tasks see"},
            {"set", sets, "PATH=VALUE replaces a value of the configs"},
            {"seed", text, "replaces the configs' seed"},
            {"threads", threads, "threads per task if Slurm does not set them (SLURM_CPUS_PER_TASK)"},
            {"sbatch", of_jobs, "an option for every job, such as --sbatch=--partition=short"},
            {"array", array, "maximum number of tasks in one array job: the site's MaxArraySize less 1"},
            {"at-once", text, "maximum number of tasks of an array that run together"},
            {"name", text, "name of the jobs"},
            {"force", flag, "start again if --out holds other tasks"},
            {"dry-run", flag, "print what it would take and what is missing, submit nothing"}});
  if (!line.read(arguments)) return ExitCode::fine;
  if (for_machines())
    throw BadInput({"--format", 0, 0},
                   fmt::format("{}, allowed with cluster: table", config::quote_for_message(line.text("format"))));
  const int status = run_script("scripts/cluster.py", arguments);
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
