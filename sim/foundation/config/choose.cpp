#include "sim/foundation/config/choose.h"

namespace specsim::config {

Arguments default_arguments(const PartInfo& info, const std::string& what, const Location& where) {
  Diagnostics diagnostics;
  Arguments arguments = read_arguments(map({}, where), info.parameters, {}, what, diagnostics);
  diagnostics.throw_if_any();
  return arguments;
}

Value spelled_out(const Value& value, const std::string& key) {
  return value.is_scalar() ? map({{key, value}}, value.where) : value;
}

}  // namespace specsim::config
