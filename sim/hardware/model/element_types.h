// Types of elements, as a model's `dtype` names them.
#pragma once

#include "sim/foundation/config/value.h"
#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/model/model_shape.h"

#include <string>

namespace specsim::cost {

// Reads `dtype`, a word or a map, into the bits and kernels of `shape`. Reports unknown words, and pairs of weights and
// activations that no kernel multiplies.
void read_element_types(const config::Value& dtype, ModelShape& shape, Diagnostics& diagnostics);

// Parts that a draft shares with its target are stored as in the target, unless `described`, the draft in the config, states
// otherwise.
void take_types_of_target(const ModelShape& target, const config::Value& described, ModelShape& draft);

// Whether the GPU has the arithmetic of kernels of that type (a name of kernel_names.h); true for unknown names.
[[nodiscard]] bool has_arithmetic(const Hardware& hardware, const std::string& dtype);
// Reports types whose arithmetic `hardware` does not have; `what`: the model's role.
void check_element_types(const ModelShape& shape, const std::string& what, const Hardware& hardware, Diagnostics& diagnostics);

}  // namespace specsim::cost
