// Rounds and whole runs on a GPU, compared with what the simulator predicts from separately timed passes.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/lab/calibrate/gpu_passes.h"

#include <memory>
#include <string>

namespace specsim::calibrate {

const std::vector<report::Column<GpuRun>>& gpu_run_columns();

class GpuRuns {
 public:
  // Predicts rounds from the passes that were timed; makes no predictions if those form no table.
  GpuRuns(GpuSetup& setup, const GpuPasses& passes, GpuObserver& observer);
  // Times rounds of random weights, whose time does not depend on how many tokens are accepted.
  void time_rounds();
  // Decodes the held-out prompts, timed and predicted. Returns a line that summarises the errors.
  std::string decode();

 private:
  [[nodiscard]] double predicted(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] double predicted_passes(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] Forecast forecast_on_cpu(double temperature) const;
  GpuRun run_held_out(double temperature, std::size_t batch, int draft_length);
  // Times the rounds of one group of prompts, from `first` on, and adds their times and emitted tokens.
  void run_group(cuda::Rounds& rounds, std::size_t first, bool prepare, GpuRun& run, llm::MeasuredAcceptance& counts);

  GpuSetup& setup_;
  const GpuPasses& passes_;
  GpuObserver& observer_;
  std::unique_ptr<cost::CostModel> cost_;  // none if the timings make no table
};

// Files for comparing other programs on the same weights (scripts/gpu/gpu_baselines.py). They hold the target's logits all along
// a prompt, as little-endian floats in rows, and the time of decoding at temperature 0, including its prompt. Returns how many
// runs were timed.
std::size_t write_for_baselines(GpuSetup& setup, GpuObserver& observer);

}  // namespace specsim::calibrate
