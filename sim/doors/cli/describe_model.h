// The properties read from a model, for specsim describe PATH and plan --verbose.
#pragma once

#include "sim/hardware/model/model_shape.h"

#include <string>

namespace specsim::cli {

// Whether `text` names a model's file or folder rather than a part.
bool names_model_file(const std::string& text);
// Prints layers by kind, parameters, types and bytes by part, cache and state, and what the file does not state.
void print_model(const cost::ModelShape& shape);
// Describes the model in a file or folder; throws its errors.
void describe_model_file(const std::string& path);

}  // namespace specsim::cli
