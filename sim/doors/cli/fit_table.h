// specsim fit of a published table of acceptance.
#pragma once

#include "sim/experiments/fit/table_fit.h"
#include "sim/foundation/base/error.h"

#include <optional>
#include <string>

namespace specsim::cli {

// The table that `file` names: one of configs/acceptance, or a .yaml file. Nothing where it is neither. `temperature`: that of
// --temperature, "" where it was not given. Throws BadInput with the places of mistakes.
struct NamedTable {
  fit::TableRecord record;
  std::string temperature;  // where it is from, for people
  std::string selection;    // what says how drafts were chosen, for people
  std::string derived;      // what its rates were worked out from, "" where they are its own
  Location where;           // where its figures are
};
std::optional<NamedTable> find_table(const std::string& file, const std::string& temperature);

void print_table_fit(const NamedTable& table, const fit::TableFit& fit);

}  // namespace specsim::cli
