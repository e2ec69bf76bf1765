// JSON of model files: configs of tokenizers, headers of tensors, indexes of files. Everything in them is data from elsewhere.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace specsim::llm {

using Json = nlohmann::ordered_json;

// Parses one document. Throws BadInput with file:line:col: broken JSON, a key given twice, lists and maps deeper than 64.
// `path` stands for the file in messages.
Json parse_json(std::string_view text, const std::string& path);

// How messages name what was found: at most 60 bytes of it as JSON.
std::string json_text(const Json& value);

}  // namespace specsim::llm
