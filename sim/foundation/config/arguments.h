// The parameters of a part, declared once in a table. The table is used to read them from YAML with located messages, by
// `describe`, and for the reference page.
#pragma once

#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::config {

enum class Type {
  integer,       // 5, or 1e6, which is whole; not 5.5, not 010, not "5"
  number,        // finite unless the interval allows more; .nan and .inf never
  text,          // any scalar; one of `choices` if there are any
  boolean,       // true or false
  number_list,   // [0.1, 0.9]
  number_table,  // [[0.9, 0.1], [0.2, 0.8]]
  value,         // any value: the part reads it itself (a nested distribution, a map of overrides)
  value_list,    // a list of such values
};

// The allowed range of a number: an interval with open or closed ends.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  [[nodiscard]] bool contains(double x) const;
  // "in (0, 1]", "at least 0", "above 0", "any finite number": ready for "..., allowed: ...".
  [[nodiscard]] std::string to_text() const;
};

Interval any_number();
Interval at_least(double low);
Interval above(double low, double high = std::numeric_limits<double>::infinity());  // excludes `low`, includes `high`
Interval between(double low, double high);                                          // both ends closed

struct Parameter {
  std::string name;
  Type type = Type::number;
  std::optional<std::string> fallback;  // default as YAML text; none: required; "" : optional without a default
  std::string summary;
  Interval interval = {};            // allowed values of a number, an integer, or each number of a list or table
  std::vector<std::string> choices;  // allowed texts; empty: any
  // The keys of a map (Type::value), or of each map of a list (Type::value_list); empty: the part reads it itself.
  std::vector<Parameter> inside = {};
};

// The validated arguments of one part. Getters break an invariant for a name or type that the table does not have. For a missing
// argument (left out without a default, or reported as wrong) `has` is false and getters return zero or empty.
class Arguments {
 public:
  [[nodiscard]] bool has(const std::string& name) const;
  // Whether it is written in the config and not a default.
  [[nodiscard]] bool given(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] std::int64_t integer(const std::string& name) const;
  [[nodiscard]] bool boolean(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] const std::vector<double>& numbers(const std::string& name) const;
  [[nodiscard]] const std::vector<std::vector<double>>& table(const std::string& name) const;
  [[nodiscard]] const Value& value(const std::string& name) const;  // Type::value and Type::value_list
  // The maps read by Parameter::inside: one for a map, none for an empty map if that is the default, one per item for a list.
  [[nodiscard]] const std::vector<Arguments>& maps(const std::string& name) const;
  // The place where the argument was written, or the part's own place if it was left out.
  [[nodiscard]] Location where(const std::string& name) const;
  [[nodiscard]] const Location& where() const { return where_; }

 private:
  struct Slot {
    Type type = Type::number;
    Location where;
    bool present = false;
    bool given = false;
    double number = 0.0;
    std::int64_t integer = 0;
    bool boolean = false;
    std::string text;
    std::vector<double> numbers;
    std::vector<std::vector<double>> table;
    Value value;
    std::vector<Arguments> maps;
  };
  [[nodiscard]] const Slot& slot(const std::string& name, Type type) const;

  Location where_;
  std::map<std::string, Slot> slots_;

  friend Arguments read_arguments(const Value&, const std::vector<Parameter>&, const std::vector<std::string>&,
                                  const std::string&, Diagnostics&);
};

// Reads `section` (a map; null counts as an empty one) by the table. All mistakes are reported to `diagnostics`: an unknown key
// (with the nearest and all allowed ones), a missing key, a wrong type, a number outside its interval, NaN, a text that is not
// among the choices. `also_allowed` are keys that other code reads ("family"). `what` names the part in messages: "target family
// zipf". Slots that could not be read keep the default or zero, so that the caller can go on and collect more mistakes.
Arguments read_arguments(const Value& section, const std::vector<Parameter>& parameters,
                         const std::vector<std::string>& also_allowed, const std::string& what, Diagnostics& diagnostics);

// Single values, with the same messages; `what` names the key in messages. nullopt after reporting.
std::optional<double> read_number(const Value& value, const Interval& interval, const std::string& what,
                                  Diagnostics& diagnostics);
std::optional<std::int64_t> read_integer(const Value& value, const Interval& interval, const std::string& what,
                                         Diagnostics& diagnostics);
std::optional<std::string> read_text(const Value& value, const std::string& what, Diagnostics& diagnostics);

}  // namespace specsim::config
