// Rounds and whole runs on a GPU beside what the simulator says of them from what was timed apart.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/lab/calibrate/gpu_passes.h"

#include <memory>
#include <string>

namespace specsim::calibrate {

const std::vector<report::Column<GpuRun>>& gpu_run_columns();

class GpuRuns {
 public:
  // Prices rounds by the passes that were timed; without predictions where those make no table.
  GpuRuns(GpuSetup& setup, const GpuPasses& passes, GpuObserver& observer);
  // Times rounds of random weights: whatever they accept, they take as long.
  void time_rounds();
  // Decodes the held-out prompts, timed and predicted. Returns a line that sums up the errors.
  std::string decode();

 private:
  [[nodiscard]] double predicted(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] double predicted_passes(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] Forecast forecast_on_cpu(double temperature) const;
  GpuRun run_held_out(double temperature, std::size_t batch, int draft_length);
  // Rounds of one group of prompts, from `first` on, timed; adds what they took and emitted.
  void run_group(cuda::Rounds& rounds, std::size_t first, bool prepare, GpuRun& run, llm::MeasuredAcceptance& counts);

  GpuSetup& setup_;
  const GpuPasses& passes_;
  GpuObserver& observer_;
  std::unique_ptr<cost::CostModel> cost_;  // none where what was timed makes no table
};

// What other programs are held against on the same weights (scripts/gpu/gpu_baselines.py): the target's logits all along a
// prompt, as little-endian floats in rows, and how long decoding it takes at temperature 0, its prompt included. How many runs
// were timed.
std::size_t write_for_baselines(GpuSetup& setup, GpuObserver& observer);

}  // namespace specsim::calibrate
