// The value that a part's parameter, or a path of a config, is set to.
#pragma once

#include "sim/foundation/config/value.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace specsim::spec {

using Setting = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                             std::vector<std::vector<double>>>;

// The setting as a config value. A text that would read as a number or a truth value is quoted, so that settings keep their
// type.
config::Value to_config(const Setting& setting, const Location& where = {});

}  // namespace specsim::spec
