#include "sim/lab/llm/model_json.h"

#include "sim/foundation/config/json.h"

namespace specsim::llm {

config::Value parse_model_json(std::string_view text, const std::string& path) {
  constexpr config::JsonLimits kLimits{.values = std::size_t{1} << 23U, .depth = 64};
  Diagnostics diagnostics;
  config::Value value = config::parse_json(text, path, diagnostics, 1, kLimits);
  diagnostics.throw_if_any();
  return value;
}

}  // namespace specsim::llm
