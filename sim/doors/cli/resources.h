// Files that come with the program: configs and plot scripts, in a source tree or installed.
#pragma once

#include <string>
#include <vector>

namespace specsim::cli {

// The folder that contains configs/ and scripts/: <prefix>/share/specsim of an installed program, or the source tree of one in
// its build folder. Empty if neither exists.
std::string resources_folder();

// The path of the shipped file `path`, such as configs/quickstart.yaml, from any working directory. Returns `path` itself if it
// exists, or if no such file is shipped.
std::string resource_path(const std::string& path);

// Runs the system's Python on a script that comes with the program, such as scripts/cluster.py, in its own process group. Waits
// for its end and returns its exit status. SIGINT, SIGTERM and SIGHUP end the script first; returns ExitCode::interrupted if it
// did not finish. Throws IoError if it cannot be started. Flushes earlier output before. The script finds this program's path in
// SPECSIM_PROGRAM.
int run_script(const std::string& script, const std::vector<std::string>& arguments);

}  // namespace specsim::cli
