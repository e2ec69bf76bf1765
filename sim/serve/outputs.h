// The files of a run: requests.csv, steps.csv.
#pragma once

#include "sim/base/whole_file.h"
#include "sim/serve/metrics.h"
#include "sim/serve/server.h"

#include <string>

namespace specsim::serve {

// A moment in seconds, to the picosecond, without zeros at its end; "" for kNever.
std::string seconds_text(Picoseconds time);

// A line for each request that was sent: when it was sent, scheduled first, got its first and last token; what it had; its
// rounds; and the milliseconds that its life went to, by cause.
std::string requests_csv(const RunResult& result);

// steps.csv, written as the steps begin.
class StepLog final : public StepObserver {
 public:
  explicit StepLog(const std::string& path);
  void began(const StepRecord& record) override;
  void commit();

 private:
  WholeFileWriter file_;
  std::string text_;
};

}  // namespace specsim::serve
