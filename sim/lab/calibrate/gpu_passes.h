// Times on a GPU: passes of each of the two models, passes of both at once, and the rest of a round.
#pragma once

#include "sim/hardware/latency/table.h"
#include "sim/lab/calibrate/gpu_observer.h"
#include "sim/lab/calibrate/gpu_setup.h"

#include <map>
#include <utility>
#include <vector>

namespace specsim::calibrate {

class GpuPasses {
 public:
  GpuPasses(GpuSetup& setup, GpuObserver& observer) : setup_(setup), observer_(observer) {}
  void measure_bandwidth();
  void time_passes();  // after the bandwidth
  void time_terms();
  // Target and draft at once, on two streams: measures how much of the shorter one is hidden.
  void time_streams();

  [[nodiscard]] std::size_t timed() const { return timed_; }  // passes
  [[nodiscard]] const std::vector<cost::MeasuredPass>& cost_table() const { return cost_table_; }
  // Seconds of a round outside its passes: distributions, draws, acceptance, the host.
  [[nodiscard]] double time_outside_passes(std::size_t batch, int draft_length) const {
    return terms_.at({batch, draft_length}) + host_.at(batch);
  }

 private:
  // Time of rounds of this size: the device's, and the host's in addition.
  struct RoundTime {
    llm::Quartiles device;
    llm::Quartiles host;
    std::size_t launches = 0;  // counted without graphs
  };
  [[nodiscard]] RoundTime time_round(std::size_t batch, int draft_length, bool graphs) const;
  void time_passes_of(const OnDevice& model, std::size_t batch, std::size_t context, bool every_batch_fits,
                      GrowingTable<GpuPass>& passes);
  // Tokens of a target's timed passes, in ascending order; only those of the cost table, without the larger ones.
  [[nodiscard]] std::vector<std::size_t> table_tokens() const;
  [[nodiscard]] std::vector<std::size_t> target_tokens() const;

  GpuSetup& setup_;
  GpuObserver& observer_;
  double read_rate_ = 1.0;
  std::size_t timed_ = 0;
  std::vector<cost::MeasuredPass> cost_table_;
  std::map<std::pair<std::size_t, int>, double> terms_;  // seconds by batch and draft length
  std::map<std::size_t, double> host_;                   // seconds by batch
};

}  // namespace specsim::calibrate
