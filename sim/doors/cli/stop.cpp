#include "sim/doors/cli/stop.h"

#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/base/whole_file.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace specsim::cli {

namespace {

std::atomic<bool> requested{false};  // handlers see nothing else
static_assert(std::atomic<bool>::is_always_lock_free);

void end_now(int /*signal*/) {
  remove_unfinished_files();
  constexpr std::string_view kSaid = "stopped before the end\n";
  static_cast<void>(!write(STDERR_FILENO, kSaid.data(), kSaid.size()));  // nothing is to be done where it cannot be said
  _exit(static_cast<int>(ExitCode::interrupted));
}

void request_stop(int signal) {
  requested = true;
  std::signal(signal, end_now);
}

void handle_with(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, handler);
}

}  // namespace

void end_without_pieces() {
  handle_with(end_now);
  if (std::signal(SIGHUP, end_now) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // started by nohup
}

StopOnSignal::StopOnSignal() {
  requested = false;
  handle_with(request_stop);
}
StopOnSignal::~StopOnSignal() { handle_with(end_now); }
const std::atomic<bool>* StopOnSignal::flag() const { return &requested; }

}  // namespace specsim::cli
