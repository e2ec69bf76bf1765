// Times of passes of two models on this machine's processor, and the bandwidth at which it reads memory meanwhile.
#pragma once

#include "sim/foundation/report/column.h"
#include "sim/hardware/latency/table.h"
#include "sim/lab/calibrate/models.h"

#include <string>
#include <vector>

namespace specsim::calibrate {

// The columns of a cost table for cost: {model: table}.
const std::vector<report::Column<cost::MeasuredPass>>& cost_table_columns();
std::vector<cost::MeasuredPass> measured_passes(const std::vector<llm::PassRow>& rows);

struct Passes {
  std::vector<llm::PassRow> rows;
  llm::Quartiles read_rate;      // bytes per second at which all threads read memory
  std::size_t target_bytes = 0;  // bytes of weights that a pass reads
  std::size_t draft_bytes = 0;
};

// Times the passes of every draft length, batch and context, in turn with reads of memory. Only for methods whose passes are the
// same in every round: chains of a draft model.
Passes time_passes(LoadedModels& models, const CalibrationSettings& settings, const OnProgress& progress);

// A row of passes.csv.
struct TimedPass {
  std::string model;  // target, draft_first, draft
  std::size_t tokens = 1;
  std::size_t batch = 1;
  std::size_t context = 0;
  llm::Quartiles seconds;
  double weight_rate = 0.0;  // bytes of weights per second
  llm::Quartiles read_rate;  // read rate of memory meanwhile, the same in every row
  double to_one = 1.0;       // ratio of its time to that of the same model's pass over one token
};
std::vector<TimedPass> timed_passes(const Passes& passes);
const std::vector<report::Column<TimedPass>>& pass_columns();

}  // namespace specsim::calibrate
