// Ctrl-C during a long run: what is finished is kept.
#pragma once

#include <atomic>

namespace specsim::cli {

// From here on SIGINT, SIGTERM and SIGHUP remove half-written files, say that the program was stopped and end it with
// ExitCode::interrupted.
void end_without_pieces();

// While one is alive, SIGINT and SIGTERM set its flag instead of ending the program; a second one ends it. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();
  [[nodiscard]] const std::atomic<bool>* flag() const;
};

}  // namespace specsim::cli
