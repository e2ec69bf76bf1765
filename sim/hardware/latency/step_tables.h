// Tables of whole measured steps, priced row by row: decode steps of a live server, steps over part of a prompt, and the time per
// output token that clients of a server saw.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/price_errors.h"
#include "sim/hardware/presets/presets.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cost {

struct PricedStep {
  std::string gpu;
  std::string engine;  // the engine whose figures price it, a name of configs/engines; what the table says where none does
  std::string model;
  std::string phase;  // decode, prompt, served
  double batch = 0.0;
  double ms = 0.0;            // measured
  double priced_ms = 0.0;     // 0: not priced, and `why` says why
  double error = 0.0;         // standard deviation of the logarithm of priced_ms, as the price states it
  double kernel_error = 0.0;  // the part of it that prices of kernels make
  std::string why;
};

struct PricedSteps {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> lines;  // the table's fields, unchanged
  std::vector<PricedStep> rows;                 // one for each line
  std::vector<std::string> warnings;
};

// Whether the header is one of a table of steps: gpu,engine,model,tp,ep,batch,mean_context,median_ms or
// gpu,engine,model,tp,phase,batch,new_tokens,context,ms, or backend,model_path,system,precision,isl,osl,tp_size,concurrency,
// silicon_tpot_ms.
bool is_step_table(const std::vector<std::string>& header);
// The columns of each of these, with commas between.
std::vector<std::string> step_table_columns();
// Prices the table's rows, on the GPUs `own` where they name them so, with `engine` in place of the one that each names where it
// is given. Throws BadInput with the line of `file`.
PricedSteps price_step_table(const std::string& file, const std::vector<std::vector<std::string>>& fields,
                             const std::optional<PresetChoice>& engine = std::nullopt,
                             const std::map<std::string, Hardware>& own = {});

struct StepErrors : PriceErrors {
  std::string gpu;
  std::string engine;
  std::string model;
  std::string phase;
  std::string batch;  // "1", "2-8", ...; "all"
};

// Errors by GPU, engine, model and phase, over all rows and band by band; the last one is over all rows, with "all" for every
// name.
std::vector<StepErrors> step_errors(const PricedSteps& table);

// Rows that are not priced: how many, by reason.
std::vector<std::string> step_gaps(const PricedSteps& table);

}  // namespace specsim::cost
