// What layers of linear attention take beside their products: the states of sequences, read and written.
#pragma once

#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"

namespace specsim::cost {

// How often a pass that brings `tokens` new ones moves a sequence's state: read once, and written behind each token that may turn
// out to be the last accepted one, all of a verification, the last of a prompt (vLLM's and SGLang's kernels of Gated DeltaNet).
double states_moved(double tokens, bool prompt);

// Seconds of a pass that moves the states of so many sequences, and of the small kernels around them. 0 without such layers.
double states_seconds(const Engine& engine, const Hardware& hardware, const ModelShape& model, double states);

}  // namespace specsim::cost
