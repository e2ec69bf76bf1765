// Types of elements, as a model's `dtype` names them.
#pragma once

#include "sim/config/value.h"
#include "sim/cost/hardware.h"
#include "sim/cost/model_shape.h"

#include <string>

namespace specsim::cost {

// Reads `dtype`, a word or a map, into the bits and kernels of `shape`. Reports unknown words, and pairs of weights and
// activations that no kernel multiplies.
void read_element_types(const config::Value& dtype, ModelShape& shape, Diagnostics& diagnostics);

// Reports types whose arithmetic `hardware` does not have; `what`: the model's role.
void check_element_types(const ModelShape& shape, const std::string& what, const Hardware& hardware, Diagnostics& diagnostics);

}  // namespace specsim::cost
