// Checks that the drafters, verifiers and proposals named in an engine's file exist.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/hardware/latency/cost_model.h"
#include "sim/hardware/latency/engine.h"

#include <string>
#include <vector>

namespace specsim::spec {

// Reports each drafter and verifier in the engine's `methods` that does not exist, with its place in the file.
void check_engine_names(const cost::Engine& engine, Diagnostics& diagnostics);
// The same for the engine of a cost model, if it has one.
void check_engine_names(const cost::CostModel* cost, Diagnostics& diagnostics);
// A sentence for each of the engine's proposals that has an unknown name similar to a known one. Other unknown names are
// allowed, since a user's own method may have any name.
std::vector<std::string> doubtful_proposals(const cost::Engine& engine);

}  // namespace specsim::spec
