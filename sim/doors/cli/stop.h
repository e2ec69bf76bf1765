// Ctrl-C during a long run: what is finished is kept.
#pragma once

#include <atomic>

namespace specsim::cli {

// From here on SIGINT, SIGTERM and SIGHUP remove half-written files, say that the program was stopped and end it with
// ExitCode::interrupted.
void end_without_pieces();

// From here on this context's commands (sim/foundation/base/context.h) are stopped by `flag`, and leave signals to the program
// that they run in, which is not their own.
void stop_by(const std::atomic<bool>* flag);
// The flag of stop_by(); nullptr in a program of its own.
const std::atomic<bool>* stop_flag();

// While one is alive, SIGINT and SIGTERM set its flag instead of ending the program; a second one ends it. One at a time. With
// stop_by() it leaves them alone.
class StopOnSignal {
 public:
  StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();
  [[nodiscard]] const std::atomic<bool>* flag() const;
};

}  // namespace specsim::cli
