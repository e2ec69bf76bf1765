// Files that come with the program: configs and plot scripts, beside it in a source tree or installed.
#pragma once

#include <string>
#include <vector>

namespace specsim::cli {

// The folder that holds configs/ and scripts/: <prefix>/share/specsim of an installed program, the source tree of one in its
// build folder. Empty where neither is there.
std::string resources_folder();

// The path of the shipped file `path`, such as configs/quickstart.yaml, from whatever directory the program is started; `path`
// itself where it exists, or where nothing of that name is shipped.
std::string shipped_or_own(const std::string& path);

// Runs the system's Python on a script that comes with the program, such as scripts/cluster.py, in a process group of its own,
// and waits for its end: its exit status. SIGINT, SIGTERM and SIGHUP end the script first: ExitCode::interrupted where it did not
// get to its end. Throws IoError where it cannot be started. What was printed is shown before. The script finds this program's
// path in SPECSIM_PROGRAM.
int run_script(const std::string& script, const std::vector<std::string>& arguments);

}  // namespace specsim::cli
