// specsim fit for a published acceptance table.
#pragma once

#include "sim/experiments/fit/table_fit.h"
#include "sim/foundation/base/error.h"

#include <optional>
#include <string>

namespace specsim::cli {

// The table that `file` names: one of configs/acceptance, or a .yaml file; nullopt if it is neither. `temperature`: the value of
// --temperature, or "". Throws BadInput with the places of errors.
struct NamedTable {
  fit::TableRecord record;
  std::string temperature;  // source of the temperature, for messages
  std::string selection;    // source of `chosen`, for messages
  std::string derived;      // source of derived rates; "" if the rates are the table's own
  Location where;           // place of its figures
};
std::optional<NamedTable> find_table(const std::string& file, const std::string& temperature);

void print_table_fit(const NamedTable& table, const fit::TableFit& fit);

}  // namespace specsim::cli
