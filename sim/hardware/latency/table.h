// A cost model of measured passes, for whoever has them at hand: cost: {model: table} reads the same from a file.
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

// Interpolates between the passes, and never beyond them. Dips are kept as measured, whatever their size, with a warning: what
// was just timed on a busy machine is noise and no mistake. `source` is what messages name. Throws BadInput where the passes make
// no table: a hole in the grid, a model without a pass.
std::unique_ptr<CostModel> cost_of_passes(const std::vector<MeasuredPass>& passes, const std::string& source);

}  // namespace specsim::cost
