#include "sim/cli/resources.h"

#include "sim/base/error.h"

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has every program declare it

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

int run_python(const std::string& script, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"python3", script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  // Debian's own Python first: matplotlib is its package, and another python3 may come first on PATH.
  int error = posix_spawn(&child, "/usr/bin/python3", nullptr, nullptr, argv.data(), environ);
  if (error == ENOENT) error = posix_spawnp(&child, "python3", nullptr, nullptr, argv.data(), environ);
  if (error != 0) throw IoError(std::string("python3 cannot be started: ") + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw IoError(std::string("python3 cannot be waited for: ") + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace specsim::cli
