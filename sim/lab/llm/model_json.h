// JSON of model files: tokenizers, headers of tensors, indexes of files. All of it is untrusted data.
#pragma once

#include "sim/foundation/config/value.h"

#include <string>
#include <string_view>

namespace specsim::llm {

// Parses one document, which may hold as many values as the largest vocabularies with their merges. Throws BadInput with
// file:line:col, as reported by config::parse_json(). `path` names the file in messages.
config::Value parse_model_json(std::string_view text, const std::string& path);

}  // namespace specsim::llm
