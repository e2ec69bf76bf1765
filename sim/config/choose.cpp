#include "sim/config/choose.h"

namespace specsim::config {

Value spelled_out(const Value& value, const std::string& key) {
  return value.is_scalar() ? map({{key, value}}, value.where) : value;
}

}  // namespace specsim::config
