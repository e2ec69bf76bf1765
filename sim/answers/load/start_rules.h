// Checks that a config is consistent: the draft method and the draft of the cost model, the scheduler's options, and vLLM's
// start rules.
#pragma once

#include "sim/answers/load/experiment.h"

namespace specsim::load {

// The draft method: from the config, or from the cost model's draft; the two must agree.
serve::DraftMethod read_method(const config::Arguments& arguments, const Speculation& speculation, const cost::CostModel* cost,
                               Diagnostics& diagnostics);

// Checks whether the server would start with its options and draft method.
void check_start(ServeExperiment& experiment, const serve::Scheduler& scheduler, const Location& where, Diagnostics& diagnostics);

}  // namespace specsim::load
