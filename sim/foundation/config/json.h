// JSON: one text, or a file with one object per line.
#pragma once

#include "sim/foundation/config/scalars.h"
#include "sim/foundation/config/value.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace specsim::config {

// Limits of a text; the defaults are those for configs.
struct JsonLimits {
  std::size_t values = kMaxValues;
  std::size_t depth = kMaxDepth;  // most levels of lists and maps within one another
};

// Reads a JSON text strictly (RFC 8259; a byte order mark at its start is skipped) into the same values as YAML, each with its
// place. Python's Infinity and NaN are read as numbers that no key allows. Numbers keep their digits, texts count as quoted.
// Duplicate keys and texts beyond `limits` are mistakes. Returns a null Value after reporting. `first_line`: the number of the
// text's first line.
Value parse_json(std::string_view text, const std::string& name, Diagnostics& diagnostics, int first_line = 1,
                 const JsonLimits& limits = {});
// The same for a whole file; a file that cannot be read is reported without a line.
Value parse_json_file(const std::string& path, Diagnostics& diagnostics);

// Calls on_line(object, where) for each non-blank line of `path`, until all lines are read or 20 mistakes are reported. on_line
// reports its own mistakes to `diagnostics`. A file that cannot be read is reported at `named`. A line that is not an object is
// reported at its place; `allowed` describes what it should hold.
void read_json_lines(const std::string& path, const Location& named, const std::string& allowed, Diagnostics& diagnostics,
                     const std::function<void(const Value& object, const Location& where)>& on_line);

}  // namespace specsim::config
