#include "sim/doors/cli/resources.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/base/exit_code.h"

#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has every program declare it

namespace specsim::cli {

namespace fs = std::filesystem;

namespace {

std::atomic<pid_t> script_group{0};  // handlers see nothing else
std::atomic<bool> stopped{false};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// SIGTERM whatever came: on SIGINT a script would print where it was.
void stop_script(int) {
  const int before = errno;
  stopped = true;
  if (const pid_t group = script_group; group > 0) kill(-group, SIGTERM);
  errno = before;
}

// While one is alive, signals that would end the program go to the script instead. What is ignored stays ignored (nohup).
class PassSignalsOn {
 public:
  PassSignalsOn() {
    stopped = false;
    struct sigaction ours {};
    ours.sa_handler = stop_script;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &ours, nullptr);
    }
  }
  PassSignalsOn(const PassSignalsOn&) = delete;
  PassSignalsOn& operator=(const PassSignalsOn&) = delete;
  ~PassSignalsOn() {
    script_group = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace

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
  const PassSignalsOn passed;
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&own_group, 0);
  pid_t child = 0;
  // Debian's own Python first: matplotlib is its package, and another python3 may come first on PATH.
  int error = posix_spawn(&child, "/usr/bin/python3", nullptr, &own_group, argv.data(), environ);
  if (error == ENOENT) error = posix_spawnp(&child, "python3", nullptr, &own_group, argv.data(), environ);
  posix_spawnattr_destroy(&own_group);
  if (error != 0) throw IoError(std::string("python3 cannot be started: ") + std::strerror(error));
  script_group = child;
  if (stopped) kill(-child, SIGTERM);  // it came before the script was there
  siginfo_t ended{};
  // Its number stays its own until nothing is sent to it any more.
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0)
    if (errno != EINTR) throw IoError(std::string("python3 cannot be waited for: ") + std::strerror(errno));
  script_group = 0;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw IoError(std::string("python3 cannot be waited for: ") + std::strerror(errno));
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || !stopped)) return WEXITSTATUS(status);
  return stopped ? static_cast<int>(ExitCode::interrupted) : 1;
}

}  // namespace specsim::cli
