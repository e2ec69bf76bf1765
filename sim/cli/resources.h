// Files that come with the program: configs and plot scripts, beside it in a source tree or installed.
#pragma once

#include <string>

namespace specsim::cli {

// The folder that holds configs/ and scripts/: <prefix>/share/specsim of an installed program, the source tree of one in its
// build folder. Empty where neither is there.
std::string resources_folder();

// `path` where it exists or is nothing that comes with the program; else the shipped file of that name, so that
// configs/quickstart.yaml is found from any directory.
std::string shipped_or_own(const std::string& path);

}  // namespace specsim::cli
