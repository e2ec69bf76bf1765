// The files of a run: requests.csv, steps.csv.
#pragma once

#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/report/column.h"
#include "sim/hardware/engine/timeline.h"
#include "sim/serving/serve/metrics.h"
#include "sim/serving/serve/server.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::load {

// A line per request that was sent: the times when it was sent, first scheduled, got its first and last token; its tokens and
// rounds; and the milliseconds of its life by cause.
std::string requests_csv(const serve::SimulationResult& result);
// requests.csv and steps.csv and their columns, for the reference page.
std::vector<report::FileInfo> output_infos();

// Passes each call to several observers.
class StepObservers final : public serve::StepObserver {
 public:
  void add(serve::StepObserver& one) { all_.push_back(&one); }
  void began(const serve::StepRecord& record) override {
    for (serve::StepObserver* const one : all_) one->began(record);
  }
  [[nodiscard]] bool any() const { return !all_.empty(); }

 private:
  std::vector<serve::StepObserver*> all_;
};

// A timeline of a run for Perfetto. It has a track for each of the first `tracks` requests, with its waiting time, its steps and
// their tokens. It has graphs of batch, queue and pool of each replica.
class StepTimeline final : public serve::StepObserver {
 public:
  StepTimeline(const std::string& path, std::size_t tracks) : timeline_(path), tracks_(tracks) {}
  void began(const serve::StepRecord& record) override;
  void close() { timeline_.close(); }

 private:
  struct Track {
    engine::Timeline::Lane lane{};
    arrivals::Picoseconds last = 0;  // everything before this moment is drawn
    std::uint32_t preemptions = 0;
    bool known = false;
  };
  engine::Timeline timeline_;
  std::size_t tracks_;
  std::vector<Track> of_;  // [request]
};

// steps.csv, written as the steps begin.
class StepLog final : public serve::StepObserver {
 public:
  explicit StepLog(const std::string& path);
  void began(const serve::StepRecord& record) override;
  void commit();

 private:
  WholeFileWriter file_;
  std::string text_;
};

}  // namespace specsim::load
