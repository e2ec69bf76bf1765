// What a GPU takes for passes of the two models, for what a round does beside them, and for both models at once.
#pragma once

#include "sim/cli/gpu_setup.h"

#include <map>
#include <utility>

namespace specsim::cli {

class GpuPasses {
 public:
  explicit GpuPasses(GpuSetup& setup) : setup_(setup) {}
  void measure_bandwidth();
  void time_passes();  // after the bandwidth
  void time_terms();
  // Target and draft at once, on two streams: how much of the shorter one is hidden.
  void time_streams();

  [[nodiscard]] std::size_t timed() const { return timed_; }  // passes
  // Seconds of a round beside its passes: distributions, draws, acceptance, the host.
  [[nodiscard]] double beside_passes(std::size_t batch, int draft_length) const {
    return terms_.at({batch, draft_length}) + host_.at(batch);
  }

 private:
  GpuSetup& setup_;
  double read_rate_ = 1.0;
  std::size_t timed_ = 0;
  std::map<std::pair<std::size_t, int>, double> terms_;  // seconds by batch and draft length
  std::map<std::size_t, double> host_;                   // seconds by batch
};

}  // namespace specsim::cli
