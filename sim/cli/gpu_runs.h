// Rounds and whole runs on a GPU beside what the simulator says of them from what was timed apart.
#pragma once

#include "sim/cli/gpu_passes.h"
#include "sim/cli/validation.h"

#include <memory>

namespace specsim::cli {

// Runs of one temperature, batch and draft length.
struct GpuRun : ValidationRow {
  const char* weights = "";
  std::size_t sequences = 0;
  std::size_t rounds = 0;
  std::size_t emitted = 0;
  double bound = 0.0;  // seconds of passes alone
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(emitted) / measured; }
};

class GpuRuns {
 public:
  // Reads the cost table that `passes` wrote.
  GpuRuns(GpuSetup& setup, const GpuPasses& passes);
  // Rounds of random weights: whatever they accept, they take as long.
  void time_rounds();
  // Held-out prompts, and what is predicted of them.
  void decode();

 private:
  [[nodiscard]] double predicted(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] double predicted_passes(std::size_t batch, int draft_length, double context) const;
  [[nodiscard]] Forecast forecast_of(const llm::Method& method, double temperature) const;
  GpuRun run_held_out(const llm::Method& method, double temperature, std::size_t batch, int draft_length);

  GpuSetup& setup_;
  const GpuPasses& passes_;
  std::unique_ptr<cost::CostModel> cost_;  // none where what was timed makes no table
};

// What other programs are held against on the same weights (scripts/gpu_baselines.py): the target's logits all along a prompt, as
// little-endian floats in rows, and how long decoding it takes at temperature 0, its prompt included. How many runs were timed.
std::size_t write_for_baselines(GpuSetup& setup);

}  // namespace specsim::cli
