// JSONL: a file with a JSON object on every line.
#pragma once

#include "sim/config/value.h"

#include <functional>
#include <string>

namespace specsim::config {

// Calls on_line(object, where) for each line of `path` that is not blank, until it has read all or 20 mistakes are reported. What
// on_line finds wrong it reports to `diagnostics` as well. A file that cannot be read is reported at `named`, a line that holds
// no object at its place; `allowed` says what it should hold.
void read_json_lines(const std::string& path, const Location& named, const std::string& allowed, Diagnostics& diagnostics,
                     const std::function<void(const Value& object, const Location& where)>& on_line);

}  // namespace specsim::config
