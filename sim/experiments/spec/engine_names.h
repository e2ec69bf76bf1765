// Whether the drafters, verifiers and proposals that an engine's file names are there.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/engine.h"

#include <string>
#include <vector>

namespace specsim::spec {

// Reports each drafter and verifier of the engine's `methods` that no part is called, where its file says it.
void check_engine_names(const cost::Engine& engine, Diagnostics& diagnostics);
// The same of the engine that a cost model prices by, where it has one.
void check_engine_names(const cost::CostModel* cost, Diagnostics& diagnostics);
// A sentence for each of the engine's proposals that nothing is called so, but that is spelt like something: a method of
// somebody's own may have any other name.
std::vector<std::string> doubtful_proposals(const cost::Engine& engine);

}  // namespace specsim::spec
