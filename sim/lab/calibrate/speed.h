// Whole decoding runs on this machine's processor, timed in turn with plain decoding.
#pragma once

#include "sim/lab/calibrate/acceptance.h"

#include <vector>

namespace specsim::calibrate {

// A row of speed.csv: runs of the first prompts at one temperature, batch and draft length.
struct Speed {
  double temperature = 1.0;
  std::size_t batch = 1;
  int draft_length = 0;  // 0: plain decoding
  std::size_t rounds = 0;
  std::size_t emitted = 0;
  double tokens_per_round = 1.0;
  double tokens_per_second = 0.0;
  llm::Speedup speedup;
  double of_all_prompts = 1.0;  // the speedup at the tokens per round of all prompts; NaN if these were not measured
};
std::vector<Speed> measure_speed(LoadedModels& models, const CalibrationSettings& settings,
                                 const std::vector<llm::Prompt>& prompts, const std::vector<TemperatureAcceptance>& acceptance,
                                 const OnProgress& progress);
const std::vector<report::Column<Speed>>& speed_columns();

}  // namespace specsim::calibrate
