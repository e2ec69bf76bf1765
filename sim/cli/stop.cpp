#include "sim/cli/stop.h"

#include <csignal>

namespace specsim::cli {

namespace {

std::atomic<bool> requested{false};  // handlers see nothing else
static_assert(std::atomic<bool>::is_always_lock_free);

void request_stop(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

void handle_with(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, handler);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  requested = false;
  handle_with(request_stop);
}
StopOnSignal::~StopOnSignal() { handle_with(SIG_DFL); }
const std::atomic<bool>* StopOnSignal::flag() const { return &requested; }

}  // namespace specsim::cli
