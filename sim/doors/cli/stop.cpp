#include "sim/doors/cli/stop.h"

#include "sim/foundation/base/context.h"
#include "sim/foundation/base/exit_code.h"
#include "sim/foundation/base/whole_file.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace specsim::cli {

namespace {

std::atomic<bool> requested{false};  // signal handlers can only use atomics
static_assert(std::atomic<bool>::is_always_lock_free);

struct StopBy {
  const std::atomic<bool>* flag = nullptr;
};

void end_now(int /*signal*/) {
  remove_unfinished_files();
  constexpr std::string_view kSaid = "stopped before the end\n";
  static_cast<void>(!write(STDERR_FILENO, kSaid.data(), kSaid.size()));  // if this write fails there is nothing left to try
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

void stop_by(const std::atomic<bool>* flag) { context().of<StopBy>().flag = flag; }
const std::atomic<bool>* stop_flag() { return context().of<StopBy>().flag; }

StopOnSignal::StopOnSignal() {
  if (stop_flag() != nullptr) return;
  requested = false;
  handle_with(request_stop);
}
StopOnSignal::~StopOnSignal() {
  if (stop_flag() == nullptr) handle_with(end_now);
}
const std::atomic<bool>* StopOnSignal::flag() const { return stop_flag() != nullptr ? stop_flag() : &requested; }

}  // namespace specsim::cli
