// Ctrl-C during a long run: finished work is kept.
#pragma once

#include <atomic>

namespace specsim::cli {

// From here on SIGINT, SIGTERM and SIGHUP remove half-written files, print that the program was stopped, and end it with
// ExitCode::interrupted.
void end_without_pieces();

// From here on `flag` stops this context's commands (sim/foundation/base/context.h). Signals are left to the host program.
void stop_by(const std::atomic<bool>* flag);
// The flag of stop_by(); nullptr if specsim is the main program.
const std::atomic<bool>* stop_flag();

// While an object exists, SIGINT and SIGTERM set its flag instead of ending the program; a second signal ends it. At most one
// object at a time. With stop_by() it leaves signals alone.
class StopOnSignal {
 public:
  StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();
  [[nodiscard]] const std::atomic<bool>* flag() const;
};

}  // namespace specsim::cli
