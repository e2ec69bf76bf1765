// Reports of a calibration on a GPU while it measures. Its tables are handed over whenever they have grown, so that a run that is
// cut short keeps what it has measured.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/lab/calibrate/validation.h"
#include "sim/lab/cuda/device_times.h"

#include <boost/core/noncopyable.hpp>

#include <string>
#include <utility>
#include <vector>

namespace specsim::calibrate {

// A row of passes.csv on a GPU.
struct GpuPass {
  std::string model;    // target, draft
  std::string weights;  // real, random, enlarged
  std::size_t tokens = 1;
  std::size_t batch = 1;
  std::size_t context = 0;
  llm::Quartiles seconds;
  std::size_t bytes = 0;    // bytes that the pass reads
  double read_share = 0.0;  // share of the bandwidth of a kernel that only reads memory
  std::uint64_t logits_hash = 0;
  [[nodiscard]] double rate() const { return static_cast<double>(bytes) / seconds.median; }
};

// The parts of a round outside its passes, as shares of the round's time.
struct TimeOutsidePasses {
  std::size_t batch = 1;
  int draft_length = 0;
  std::size_t launches = 0;
  double host_share = 0.0;      // the host, and launches of empty kernels
  double sampling_share = 0.0;  // draws and acceptance
};

// Seconds of some target passes alone, of draft passes alone that take about as long, and of both at once on two streams.
struct Streams {
  llm::Quartiles target;
  llm::Quartiles draft;
  llm::Quartiles both;
};

// A row of validation.csv on a GPU: runs of one temperature, batch and draft length.
struct GpuRun : ValidationRow {
  std::string weights;
  std::size_t sequences = 0;
  std::size_t rounds = 0;
  std::size_t emitted = 0;
  double bound = 0.0;  // seconds that the passes alone would take
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(emitted) / measured; }
};

class GpuObserver : boost::noncopyable {
 public:
  virtual ~GpuObserver() = default;
  // A file of the results, complete, handed over again whenever it has grown.
  virtual void file(const std::string& name, const std::string& text) = 0;
  virtual void progress(const std::string& unit, double done, double all) = 0;
  virtual void bandwidth(const cuda::Bandwidth& bandwidth) = 0;
  virtual void pass(const GpuPass& pass) = 0;
  virtual void no_room(const std::string& model, std::size_t batch, std::size_t context) = 0;  // its cache does not fit
  virtual void time_outside_passes(const TimeOutsidePasses& shares) = 0;
  virtual void streams(const Streams& streams) = 0;
  virtual void warning(const std::string& text) = 0;           // notes on the cost table for the reader
  virtual void no_predictions(const std::string& reason) = 0;  // the measurements make no cost table
  virtual void rounds(const Errors& errors) = 0;               // errors of the rounds that the cost table predicts
  virtual void run(const GpuRun& run) = 0;
};

// Rows of a table that is handed over again whenever it has grown.
template <class Row>
class GrowingTable {
 public:
  GrowingTable(GpuObserver& observer, std::string name, const std::vector<report::Column<Row>>& columns)
      : observer_(observer), name_(std::move(name)), columns_(columns) {}
  void add(Row row) { rows_.push_back(std::move(row)); }
  void write() const { observer_.file(name_, report::csv(columns_, rows_)); }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  GpuObserver& observer_;
  std::string name_;
  const std::vector<report::Column<Row>>& columns_;
  std::vector<Row> rows_;
};

// The columns of a time: median, quartiles and samples, in milliseconds.
template <class Row>
std::vector<report::Column<Row>> time_columns(llm::Quartiles Row::*time) {
  const auto ms = [time](double llm::Quartiles::*part) {
    return [time, part](const Row& r) { return report::csv_real(1e3 * (r.*time.*part), 6); };
  };
  return {{"ms", "ms", "median", ms(&llm::Quartiles::median)},
          {"ms_quartile_1", "ms", "lower quartile", ms(&llm::Quartiles::low)},
          {"ms_quartile_3", "ms", "upper quartile", ms(&llm::Quartiles::high)},
          {"samples", "1", "number of timings", [time](const Row& r) { return std::to_string((r.*time).samples); }}};
}
// The columns of several lists, in order.
template <class Row>
std::vector<report::Column<Row>> joined(std::vector<report::Column<Row>> first, const std::vector<report::Column<Row>>& second,
                                        const std::vector<report::Column<Row>>& third = {}) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

}  // namespace specsim::calibrate
