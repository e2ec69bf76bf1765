// YAML as a tree of values with their places in a file, so that every later message can name file:line:col.
#pragma once

#include "sim/foundation/base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::config {

enum class Kind { null, scalar, list, map };

struct Field;

struct Value {
  Kind kind = Kind::null;
  Location where;
  std::string text;           // scalar: as written, without quotes
  bool quoted = false;        // scalar: "10" is a text, 10 is a number
  std::vector<Value> items;   // list
  std::vector<Field> fields;  // map, in the order written; keys are unique after parsing

  [[nodiscard]] bool is_null() const { return kind == Kind::null; }
  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_list() const { return kind == Kind::list; }
  [[nodiscard]] bool is_map() const { return kind == Kind::map; }
  // The field's value, or nullptr if this is not a map or has no such key.
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] Value* find(std::string_view key);
};

struct Field {
  std::string key;
  Location where;  // the place of the key
  Value value;
};

// Reads one YAML document. Duplicate keys, merge keys (<<), aliases, tags, several documents, non-scalar keys, broken YAML,
// control characters and broken UTF-8 are reported to `diagnostics` with their place (yaml-cpp alone accepts the first two
// silently). An unreadable or empty file is a diagnostic without a line. Returns a null Value if nothing could be read; if a key
// is given twice, the first one stays. Columns count characters. The place of a null that was left blank is its key's.
Value parse_file(const std::string& path, Diagnostics& diagnostics);
// The same for text; `name` is used as the file in messages, e.g. "--set pair.vocab". Empty text is a null.
Value parse_text(const std::string& text, const std::string& name, Diagnostics& diagnostics);

// A plain scalar and a map that are in no file, with the place that messages are to name. A field has the place of its value.
Value scalar(std::string text, Location where);
Value map(std::vector<std::pair<std::string, Value>> fields, Location where);

// The value at "a.b.c" (list items by number: "pair.target.components.0"), or nullptr.
const Value* find_path(const Value& root, std::string_view path);
// Puts `value` at "a.b.c" and makes missing maps. Reports to `diagnostics` if the path runs through a scalar or beyond a list's
// end. `path_where` is the place of the path itself. Such reports use it, and so do the maps made here.
void set_path(Value& root, std::string_view path, Value value, const Location& path_where, Diagnostics& diagnostics);

// The number that a plain scalar represents: 5, -0.5, 1e6. Nothing for a quoted text, a leading zero, .nan, .inf, 0x10, 1_000, or
// a number out of range. An integer may be written 1e6 or 2.0 and is exact in all 64 bits.
std::optional<double> as_number(const Value& value);
std::optional<std::int64_t> as_integer(const Value& value);
// The same for a separate text, as on the command line.
std::optional<double> as_number(std::string_view text);
std::optional<std::int64_t> as_integer(std::string_view text);

// How messages name a found value: `5`, `"abc"`, `the text "5"`, `010 (a leading zero)`, `a list`, `null (no value)`.
std::string description_of_found(const Value& value);
// A text in quotes, with control characters escaped; shortened if it is long.
std::string quote_for_message(std::string_view text);
// The parts of a text between separators outside brackets and quotes.
std::vector<std::string> split_outside_brackets(std::string_view text, char separator);
// The message about a name that is none of `allowed`: `WHAT "NAME", did you mean "NEAREST"? allowed: A, B`.
std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& allowed);

// One line of flow-style YAML that parses to the same tree; keys in the order written. For hashes and manifests.
std::string to_flow_text(const Value& value);
// The same with keys sorted at every level and numbers in their shortest form, so that equal settings compare equal: 1e6 and
// 1000000, zipf and "zipf". Conversely, texts that read as equal numbers (1.10, 1.1) need quotes to differ.
std::string to_canonical_text(const Value& value);

}  // namespace specsim::config
