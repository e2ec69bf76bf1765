#include "sim/cli/resources.h"

#include <filesystem>
#include <system_error>

namespace specsim::cli {

namespace fs = std::filesystem;

std::string resources_folder() {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  if (folder.empty()) return "";
  for (const fs::path& candidate : {folder / "../share/specsim", folder / ".."})
    if (fs::is_regular_file(candidate / "configs/quickstart.yaml", ignored))
      return fs::weakly_canonical(candidate, ignored).string();
  return "";
}

std::string shipped_or_own(const std::string& path) {
  std::error_code ignored;
  if (path.rfind("configs/", 0) != 0 || fs::exists(path, ignored)) return path;
  const std::string folder = resources_folder();
  const fs::path shipped = fs::path(folder) / path;
  return !folder.empty() && fs::is_regular_file(shipped, ignored) ? shipped.string() : path;
}

}  // namespace specsim::cli
