// Real runs of held-out prompts on this machine's processor, compared with what the simulator predicts from other prompts'
// acceptance and from the times of passes.
#pragma once

#include "sim/hardware/latency/cost_model.h"
#include "sim/lab/calibrate/validation.h"

#include <functional>
#include <string>
#include <vector>

namespace specsim::calibrate {

// Finished work of a validation, which may be kept longer than the process. `group` 0 has the tokens per round of held-out
// prompts, group 1 + r the samples of repetition r. find() is empty if nothing is kept.
struct ValidationCheckpoint {
  std::function<std::vector<double>(std::uint64_t group, std::uint64_t index)> find;
  std::function<void(std::uint64_t group, std::uint64_t index, const std::vector<double>& values)> keep;
};

// A row of validation.csv for a processor's runs.
struct ValidationLine : ValidationRow {
  llm::RoundSeconds measured_parts;
  llm::RoundSeconds predicted_parts;
  double timing_noise = 0.0;  // standard error of timing_error(): of the run's time and of the table's
  double speedup_noise = 0.0;
};
const std::vector<report::Column<ValidationLine>>& validation_line_columns();

// A cost table is shared by the temperatures at which passes take the same time: 0 has its own.
struct CostTable {
  bool greedy = false;
  std::vector<llm::PassRow> rows;
};

struct Validation {
  std::vector<ValidationLine> lines;
  std::vector<Forecast> forecasts;  // one per temperature
  std::vector<CostTable> tables;
  std::string summary;
};

// Reads both prompt files, and checks them against each other and the method. Throws BadInput.
struct ValidationPrompts {
  std::vector<llm::Prompt> fitted;    // prompts that acceptance is measured on
  std::vector<llm::Prompt> held_out;  // prompts whose runs are predicted
};
ValidationPrompts validation_prompts(const LoadedModels& models, const CalibrationSettings& settings);

// A text that is equal for runs that may continue each other's work: the models, their files, the prompts, and everything that
// affects a sample.
std::string validation_identity(const LoadedModels& models, const CalibrationSettings& settings,
                                const ValidationPrompts& prompts);

// Measures acceptance on the prompts for it, times the decoding of the held-out prompts, times passes separately, and compares
// every run with the prediction from acceptance and passes. Seconds are of this machine's processor. `kept` lets an interrupted
// run resume; `progress` is called with the progress.
Validation validate(const LoadedModels& models, const CalibrationSettings& settings, const ValidationPrompts& prompts,
                    const ValidationCheckpoint& kept, const OnProgress& progress);

}  // namespace specsim::calibrate
