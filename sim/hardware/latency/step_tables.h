// Tables of whole measured steps, compared row by row with their estimated times: decode steps of a live server, steps over part
// of a prompt, and the time per output token that clients of a server saw.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/estimate_errors.h"
#include "sim/hardware/presets/presets.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

struct EstimatedStep {
  std::string gpu;
  std::string engine;  // the engine that the estimate uses, a name of configs/engines; the table's own text if it is not known
  std::string model;
  std::string phase;  // decode, prompt, served
  double batch = 0.0;
  double ms = 0.0;            // measured
  double priced_ms = 0.0;     // 0: not estimated, and `why` is the reason
  double error = 0.0;         // standard deviation of the logarithm of priced_ms, as the model states it
  double kernel_error = 0.0;  // the part of it due to the estimates of kernels
  std::string why;
};

struct EstimatedSteps {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> lines;  // the table's fields, unchanged
  std::vector<EstimatedStep> rows;              // one for each line
  std::vector<std::string> warnings;
};

// Whether the header is one of a table of steps: gpu,engine,model,tp,ep,batch,mean_context,median_ms or
// gpu,engine,model,tp,phase,batch,new_tokens,context,ms, or backend,model_path,system,precision,isl,osl,tp_size,concurrency,
// silicon_tpot_ms.
bool is_step_table(const std::vector<std::string>& header);
// The columns of each of these, separated by commas.
std::vector<std::string> step_table_columns();
// Estimates the table's rows. `own`: GPUs that replace presets of the same name. `engine`, if given, replaces the engine that
// each row names. Throws BadInput with the line of `file`.
EstimatedSteps estimate_step_table(const std::string& file, const std::vector<std::vector<std::string>>& fields,
                                   const std::optional<PresetChoice>& engine = std::nullopt,
                                   const std::map<std::string, Hardware>& own = {});

struct StepErrors : EstimateErrors {
  std::string gpu;
  std::string engine;
  std::string model;
  std::string phase;
  std::string batch;  // "1", "2-8", ...; "all"
};

// Errors by GPU, engine, model and phase, over all rows and band by band; the last one is over all rows, with "all" for every
// name.
std::vector<StepErrors> step_errors(const EstimatedSteps& table);

// Rows that are not estimated: how many, by reason.
std::vector<std::string> step_gaps(const EstimatedSteps& table);

}  // namespace specsim::cost
