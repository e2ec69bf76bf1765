// Whether what a config describes fits together: what drafts and the draft that is priced, the scheduler's options and vLLM's
// start.
#pragma once

#include "sim/answers/load/experiment.h"

namespace specsim::load {

// What drafts: as the config says, or by the draft that the cost model knows; the two must agree.
serve::DraftMethod read_method(const config::Arguments& arguments, const Speculation& speculation, const cost::CostModel* cost,
                               Diagnostics& diagnostics);

// Whether the server would start so: with its own options, and with what drafts.
void check_start(ServeExperiment& experiment, const serve::Scheduler& scheduler, const Location& where, Diagnostics& diagnostics);

}  // namespace specsim::load
