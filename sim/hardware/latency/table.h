// A cost model of measured passes that a program has in memory; cost: {model: table} reads the same from a file.
#pragma once

#include "sim/hardware/latency/cost_model.h"

#include <memory>
#include <string>
#include <vector>

namespace specsim::cost {

// A row of a cost table.
struct MeasuredPass {
  std::string model;     // target, draft, or draft_first: a round's first draft pass
  double tokens = 1.0;   // new tokens of each sequence in the pass
  double batch = 1.0;    // sequences
  double context = 0.0;  // cached tokens of each
  double ms = 0.0;
};

// Interpolates between the passes, and never beyond them. Dips of any size are kept as measured, with a warning: passes timed
// just now on a busy machine are noisy, not wrong. `source` is the name used in messages. Throws BadInput if the passes do not
// form a table: a hole in the grid, a model without a pass.
std::unique_ptr<CostModel> cost_of_passes(const std::vector<MeasuredPass>& passes, const std::string& source);

}  // namespace specsim::cost
