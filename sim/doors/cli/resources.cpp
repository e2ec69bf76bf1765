#include "sim/doors/cli/resources.h"

#include "sim/doors/cli/output_form.h"
#include "sim/doors/cli/stop.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/base/output.h"

#include <fmt/format.h>

#include <spawn.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has every program declare it

namespace specsim::cli {

namespace fs = std::filesystem;

namespace {

std::atomic<pid_t> script_group{0};  // signal handlers can only read atomics
std::atomic<bool> stopped{false};
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// Sends SIGTERM for every signal, since on SIGINT a Python script would print a traceback.
void stop_script(int) {
  const int before = errno;
  stopped = true;
  if (const pid_t group = script_group; group > 0) kill(-group, SIGTERM);
  errno = before;
}

// While an object exists, signals that would end the program are passed to the script instead. Ignored signals stay ignored
// (nohup).
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

// Waits until the script has ended, but does not reap it, so that its process number cannot be reused and no signal reaches
// another process. Returns whether it was stopped by a signal, or by `flag` if there is one.
bool wait_for(pid_t child, const std::atomic<bool>* flag) {
  if (flag == nullptr) {
    script_group = child;
    if (stopped) kill(-child, SIGTERM);  // the signal came before the script had started
  }
  bool told = false;
  for (siginfo_t ended{}; ended.si_pid == 0;) {
    const int options = WEXITED | WNOWAIT | (flag != nullptr ? WNOHANG : 0);
    if (waitid(P_PID, static_cast<id_t>(child), &ended, options) < 0 && errno != EINTR)
      throw IoError(std::string("python3 cannot be waited for: ") + std::strerror(errno));
    if (flag == nullptr || ended.si_pid != 0) continue;
    if (*flag && !std::exchange(told, true)) kill(-child, SIGTERM);
    constexpr timespec kBetweenLooks{0, 20'000'000};
    nanosleep(&kBetweenLooks, nullptr);
  }
  if (flag == nullptr) script_group = 0;
  return flag == nullptr ? stopped.load() : told;
}

// Python needs more stack than the rest of this program. A started process inherits the limit.
class LargerStack {
 public:
  LargerStack() {
    constexpr rlim_t kEnough = rlim_t{8} << 20U;
    if (getrlimit(RLIMIT_STACK, &before_) != 0 || before_.rlim_cur >= kEnough) return;
    rlimit larger = before_;
    larger.rlim_cur = std::min(kEnough, before_.rlim_max);
    raised_ = setrlimit(RLIMIT_STACK, &larger) == 0;
  }
  LargerStack(const LargerStack&) = delete;
  LargerStack& operator=(const LargerStack&) = delete;
  ~LargerStack() {
    if (raised_) setrlimit(RLIMIT_STACK, &before_);
  }

 private:
  rlimit before_{};
  bool raised_ = false;
};

// The file of this program; without /proc, as in a bare chroot, the path that it was started by.
fs::path own_path() {
  std::error_code ignored;
  fs::path path = fs::read_symlink("/proc/self/exe", ignored);
  if (!path.empty()) return path;
  const auto* const started =
      reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT: the kernel gives an address as a number
  return started == nullptr ? fs::path() : fs::absolute(started, ignored);
}

// This program's environment, plus this program's path for the script.
std::vector<std::string> environment_of_script() {
  const std::string name = "SPECSIM_PROGRAM=";
  std::vector<std::string> settings = {name + own_path().string()};
  for (char** setting = environ; *setting != nullptr; ++setting)
    if (std::string_view(*setting).substr(0, name.size()) != name) settings.emplace_back(*setting);
  return settings;
}

}  // namespace

std::string resources_folder() {
  std::error_code ignored;
  const fs::path folder = own_path().parent_path();
  if (folder.empty()) return "";
  for (const fs::path& candidate : {folder / "../share/specsim", folder / ".."})
    if (fs::is_regular_file(candidate / "configs/quickstart.yaml", ignored))
      return fs::weakly_canonical(candidate, ignored).string();
  return "";
}

std::string resource_path(const std::string& path) {
  std::error_code ignored;
  if (path.rfind("configs/", 0) != 0 || fs::exists(path, ignored)) return path;
  const std::string folder = resources_folder();
  const fs::path shipped = fs::path(folder) / path;
  return !folder.empty() && fs::is_regular_file(shipped, ignored) ? shipped.string() : path;
}

int run_script(const std::string& script, const std::vector<std::string>& arguments) {
  const std::string resources = resources_folder();
  if (resources.empty()) throw IoError(script + ", which comes with specsim, is neither installed nor next to the program");
  flush_output();
  // Prefers Debian's own Python, since matplotlib is a Debian package and PATH may have another python3. Python finds its
  // packages by the path that it is called with; "python3" alone would be that of an activated environment.
  std::string own = "/usr/bin/python3";
  std::vector<std::string> words = {own, (fs::path(resources) / script).string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = environment_of_script();
  std::vector<char*> environment;
  for (std::string& setting : settings) environment.push_back(setting.data());
  environment.push_back(nullptr);
  const std::atomic<bool>* const flag = stop_flag();  // in another program, which handles its own signals
  std::optional<PassSignalsOn> passed;
  if (flag == nullptr) passed.emplace();
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&own_group, 0);
  // Text of the script becomes text of the document that --format asks for.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> printed(for_machines() ? std::tmpfile() : nullptr, std::fclose);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (printed != nullptr) posix_spawn_file_actions_adddup2(&files, fileno(printed.get()), STDOUT_FILENO);
  const LargerStack larger;
  pid_t child = 0;
  int error = posix_spawn(&child, own.c_str(), &files, &own_group, argv.data(), environment.data());
  std::string any = "python3";
  if (error == ENOENT) {
    argv.front() = any.data();
    error = posix_spawnp(&child, any.c_str(), &files, &own_group, argv.data(), environment.data());
  }
  posix_spawnattr_destroy(&own_group);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw IoError(std::string("python3 cannot be started: ") + std::strerror(error));
  const bool was_stopped = wait_for(child, flag);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw IoError(std::string("python3 cannot be waited for: ") + std::strerror(errno));
  if (printed != nullptr) {
    std::rewind(printed.get());
    std::array<char, 4096> piece{};
    while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), printed.get()))
      print_output("{}", std::string_view(piece.data(), size));
  }
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || !was_stopped)) return WEXITSTATUS(status);
  if (was_stopped) return static_cast<int>(ExitCode::interrupted);
  throw IoError(fmt::format("{}: ended by signal {} ({})", script, WTERMSIG(status), strsignal(WTERMSIG(status))));
}

}  // namespace specsim::cli
