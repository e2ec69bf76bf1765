// What was understood of a model: specsim describe PATH, and plan --verbose.
#pragma once

#include "sim/hardware/model/model_shape.h"

#include <string>

namespace specsim::cli {

// Whether `text` names a model's file or folder rather than a part.
bool names_model_file(const std::string& text);
// Layers by kind, parameters, types and bytes by part, cache and state, and what the file leaves open.
void print_model(const cost::ModelShape& shape);
// The model that the file or folder holds; throws what is wrong with it.
void describe_model_file(const std::string& path);

}  // namespace specsim::cli
