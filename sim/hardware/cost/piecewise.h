// Verification that is not one captured graph: its attention is launched between graphs of what lies between attention layers.
#pragma once

#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"

namespace specsim::cost {

// Seconds that a verification takes longer than the `whole` ones as one graph: gaps between its pieces, or all that launching
// them takes where this is more. 0 where the engine verifies in one graph.
double pieces_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double whole);

}  // namespace specsim::cost
