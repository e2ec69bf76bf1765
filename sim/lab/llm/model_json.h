// JSON of model files: tokenizers, headers of tensors, indexes of files. Everything in them is data from elsewhere.
#pragma once

#include "sim/foundation/config/value.h"

#include <string>
#include <string_view>

namespace specsim::llm {

// Parses one document, which may hold as many values as the largest vocabularies with their merges have. Throws BadInput with
// file:line:col as config::parse_json() reports it. `path` stands for the file in messages.
config::Value parse_model_json(std::string_view text, const std::string& path);

}  // namespace specsim::llm
