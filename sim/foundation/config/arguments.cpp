#include "sim/foundation/config/arguments.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/config/scalars.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace specsim::config {

namespace {

// A list with a million wrong numbers is one mistake, not a million.
constexpr int kMostMistakesOfList = 5;

// "an integer, at least 0", "a number in (0, 1]", "any finite number"
std::string allowed_number(const std::string& noun, const Interval& interval) {
  const std::string text = interval.to_text();
  if (text == any_number().to_text()) return noun == "a number" ? text : noun;
  return noun + (text.starts_with("in ") ? " " : ", ") + text;
}

void report(const Value& value, const std::string& what, const std::string& allowed, Diagnostics& diagnostics) {
  diagnostics.add(value.where, fmt::format("{} is {}, allowed: {}", what, description_of_found(value), allowed));
}

std::string allowed_text(const Parameter& parameter) {
  switch (parameter.type) {
    case Type::integer:
      return allowed_number("an integer", parameter.interval);
    case Type::number:
      return allowed_number("a number", parameter.interval);
    case Type::text:
      return parameter.choices.empty() ? "a text" : fmt::format("{}", fmt::join(parameter.choices, ", "));
    case Type::boolean:
      return "true or false";
    case Type::number_list:
      return "a list, each item " + allowed_number("a number", parameter.interval);
    case Type::number_table:
      return "a list of lists, each item " + allowed_number("a number", parameter.interval);
    case Type::value:
      return "a map";
    case Type::value_list:
      return "a list";
  }
  return "";
}

// Counts the mistakes inside one list or table, and stops before they hide all other mistakes.
class ListMistakes {
 public:
  ListMistakes(const Value& list, const std::string& what, Diagnostics& diagnostics)
      : list_(list), what_(what), diagnostics_(diagnostics) {}
  [[nodiscard]] bool any() const { return count_ > 0; }
  // True if the rest of the list should be skipped.
  bool add() {
    if (++count_ < kMostMistakesOfList) return false;
    diagnostics_.add(list_.where, fmt::format("{} has {} wrong items so far, the rest was not read", what_, count_));
    return true;
  }
  [[nodiscard]] bool full() const { return count_ >= kMostMistakesOfList; }

 private:
  const Value& list_;
  const std::string& what_;
  Diagnostics& diagnostics_;
  int count_ = 0;
};

// Appends the correct numbers; stops when `mistakes` is full.
void read_numbers(const Value& list, const Interval& interval, const std::string& what, std::vector<double>& numbers,
                  ListMistakes& mistakes, Diagnostics& diagnostics) {
  numbers.reserve(list.items.size());
  for (const Value& item : list.items) {
    const auto x = as_number(item);
    if (x && interval.contains(*x)) {  // the item's name is made only when needed: tables can be long
      numbers.push_back(*x);
      continue;
    }
    const auto n = static_cast<std::size_t>(&item - list.items.data());
    read_number(item, interval, fmt::format("{}[{}]", what, n), diagnostics);
    if (mistakes.add()) return;
  }
}

bool fill_list(std::vector<double>& slot, const Value& value, const Parameter& parameter, Diagnostics& diagnostics) {
  if (!value.is_list()) {
    report(value, parameter.name, allowed_text(parameter), diagnostics);
    return false;
  }
  std::vector<double> numbers;
  ListMistakes mistakes(value, parameter.name, diagnostics);
  read_numbers(value, parameter.interval, parameter.name, numbers, mistakes, diagnostics);
  if (mistakes.any()) return false;
  slot = std::move(numbers);
  return true;
}

bool fill_table(std::vector<std::vector<double>>& slot, const Value& value, const Parameter& parameter,
                Diagnostics& diagnostics) {
  if (!value.is_list()) {
    report(value, parameter.name, allowed_text(parameter), diagnostics);
    return false;
  }
  std::vector<std::vector<double>> table;
  ListMistakes mistakes(value, parameter.name, diagnostics);
  for (std::size_t i = 0; i < value.items.size() && !mistakes.full(); ++i) {
    const Value& row = value.items[i];
    const std::string name = fmt::format("{}[{}]", parameter.name, i);
    table.emplace_back();
    if (row.is_list()) {
      read_numbers(row, parameter.interval, name, table.back(), mistakes, diagnostics);
    } else {
      report(row, name, "a list, each item " + allowed_number("a number", parameter.interval), diagnostics);
      mistakes.add();
    }
  }
  if (mistakes.any()) return false;
  slot = std::move(table);
  return true;
}

bool fill_text(std::string& slot, const Value& value, const Parameter& parameter, Diagnostics& diagnostics) {
  if (!value.is_scalar()) {
    report(value, parameter.name, allowed_text(parameter), diagnostics);
    return false;
  }
  const std::vector<std::string>& choices = parameter.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value.text) == choices.end()) {
    diagnostics.add(value.where, not_allowed(parameter.name + " is " + description_of_found(value), value.text, choices));
    return false;
  }
  slot = value.text;
  return true;
}

bool fill_boolean(bool& slot, const Value& value, const Parameter& parameter, Diagnostics& diagnostics) {
  if (!value.is_scalar() || value.quoted || (value.text != "true" && value.text != "false")) {
    report(value, parameter.name, allowed_text(parameter), diagnostics);
    return false;
  }
  slot = value.text == "true";
  return true;
}

// Reads a map, or a list of maps, whose keys the parameter defines.
bool fill_maps(std::vector<Arguments>& maps, const Value& value, const Parameter& parameter, Diagnostics& diagnostics) {
  maps.clear();
  if (parameter.inside.empty()) return true;
  const std::size_t before = diagnostics.list().size();
  if (parameter.type == Type::value_list) {
    for (std::size_t i = 0; i < value.items.size(); ++i)
      maps.push_back(read_arguments(value.items[i], parameter.inside, {}, fmt::format("{}[{}]", parameter.name, i), diagnostics));
  } else if (!(value.is_map() && value.fields.empty() && parameter.fallback == "{}")) {
    maps.push_back(read_arguments(value, parameter.inside, {}, parameter.name, diagnostics));
  }
  return diagnostics.list().size() == before;
}

// A template because Slot is private to Arguments. The slot is set only if the value is correct.
template <class Slot>
bool fill(Slot& slot, const Value& value, const Parameter& parameter, Diagnostics& diagnostics) {
  switch (parameter.type) {
    case Type::integer: {
      const auto n = read_integer(value, parameter.interval, parameter.name, diagnostics);
      if (n) slot.integer = *n;
      return n.has_value();
    }
    case Type::number: {
      const auto x = read_number(value, parameter.interval, parameter.name, diagnostics);
      if (x) slot.number = *x;
      return x.has_value();
    }
    case Type::text:
      return fill_text(slot.text, value, parameter, diagnostics);
    case Type::boolean:
      return fill_boolean(slot.boolean, value, parameter, diagnostics);
    case Type::number_list:
      return fill_list(slot.numbers, value, parameter, diagnostics);
    case Type::number_table:
      return fill_table(slot.table, value, parameter, diagnostics);
    case Type::value_list:
      if (!value.is_list()) {
        report(value, parameter.name, allowed_text(parameter), diagnostics);
        return false;
      }
      slot.value = value;
      return fill_maps(slot.maps, value, parameter, diagnostics);
    case Type::value:
      slot.value = value;
      return fill_maps(slot.maps, value, parameter, diagnostics);
  }
  return false;
}

// A default has no place in the user's file: mistakes found in it later are reported at the part that it belongs to.
void relocate(Value& value, const Location& where) {
  value.where = where;
  for (Value& item : value.items) relocate(item, where);
  for (Field& field : value.fields) {
    field.where = where;
    relocate(field.value, where);
  }
}

Value default_of(const Parameter& parameter, const std::string& what, const Location& where) {
  Diagnostics diagnostics;
  Value value = parse_text(*parameter.fallback, "default of " + parameter.name, diagnostics);
  SPECSIM_CHECK(diagnostics.empty(), "default of {} in {}: {}", parameter.name, what, diagnostics.list().front().message);
  relocate(value, where);
  return value;
}

}  // namespace

bool Interval::contains(double x) const { return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high); }

std::string Interval::to_text() const {
  const bool has_low = low > -std::numeric_limits<double>::infinity();
  const bool has_high = high < std::numeric_limits<double>::infinity();
  if (has_low && has_high)
    return fmt::format("in {}{}, {}{}", low_open ? '(' : '[', number_text(low), number_text(high), high_open ? ')' : ']');
  if (has_low) return (low_open ? "above " : "at least ") + number_text(low);
  if (has_high) return (high_open ? "below " : "at most ") + number_text(high);
  return "any finite number";
}

Interval any_number() { return {}; }

Interval at_least(double low) {
  Interval interval;
  interval.low = low;
  return interval;
}

Interval above(double low, double high) {
  Interval interval = between(low, high);
  interval.low_open = true;
  return interval;
}

Interval between(double low, double high) {
  Interval interval = at_least(low);
  interval.high = high;
  return interval;
}

const Arguments::Slot& Arguments::slot(const std::string& name, Type type) const {
  const auto found = slots_.find(name);
  SPECSIM_CHECK(found != slots_.end(), "no parameter {} in the table", name);
  SPECSIM_CHECK(found->second.type == type, "parameter {} has type {}, asked for {}", name, static_cast<int>(found->second.type),
                static_cast<int>(type));
  return found->second;
}

bool Arguments::has(const std::string& name) const {
  const auto found = slots_.find(name);
  SPECSIM_CHECK(found != slots_.end(), "no parameter {} in the table", name);
  return found->second.present;
}

bool Arguments::given(const std::string& name) const {
  const auto found = slots_.find(name);
  SPECSIM_CHECK(found != slots_.end(), "no parameter {} in the table", name);
  return found->second.given;
}

double Arguments::number(const std::string& name) const { return slot(name, Type::number).number; }
std::int64_t Arguments::integer(const std::string& name) const { return slot(name, Type::integer).integer; }
bool Arguments::boolean(const std::string& name) const { return slot(name, Type::boolean).boolean; }
const std::string& Arguments::text(const std::string& name) const { return slot(name, Type::text).text; }
const std::vector<double>& Arguments::numbers(const std::string& name) const { return slot(name, Type::number_list).numbers; }
const std::vector<std::vector<double>>& Arguments::table(const std::string& name) const {
  return slot(name, Type::number_table).table;
}

const Value& Arguments::value(const std::string& name) const {
  const auto found = slots_.find(name);
  const bool is_list = found != slots_.end() && found->second.type == Type::value_list;
  return slot(name, is_list ? Type::value_list : Type::value).value;
}

const std::vector<Arguments>& Arguments::maps(const std::string& name) const {
  const auto found = slots_.find(name);
  SPECSIM_CHECK(found != slots_.end(), "no parameter {} in the table", name);
  return found->second.maps;
}

Location Arguments::where(const std::string& name) const {
  const auto found = slots_.find(name);
  SPECSIM_CHECK(found != slots_.end(), "no parameter {} in the table", name);
  return found->second.where;
}

Arguments read_arguments(const Value& section, const std::vector<Parameter>& parameters,
                         const std::vector<std::string>& also_allowed, const std::string& what, Diagnostics& diagnostics) {
  Arguments arguments;
  arguments.where_ = section.where;
  const bool readable = section.is_map() || section.is_null();
  if (!readable) report(section, what, "a map", diagnostics);

  std::set<std::string> names(also_allowed.begin(), also_allowed.end());
  for (const Parameter& parameter : parameters) names.insert(parameter.name);
  const std::vector<std::string> allowed(names.begin(), names.end());
  std::set<std::string> meant;               // names meant by misspelt keys; these are not reported as missing too
  constexpr std::size_t kMostUnknown = 100;  // each is compared with every name, which takes minutes for a million keys
  std::size_t unknown = 0;
  for (const Field& field : section.fields) {
    if (names.contains(field.key) || ++unknown > kMostUnknown) continue;
    const std::string near = nearest_name(field.key, allowed);
    if (!near.empty()) meant.insert(near);
    diagnostics.add(field.where,
                    not_allowed(fmt::format("unknown key {} in {}", quote_for_message(field.key), what), field.key, allowed));
  }
  if (unknown > kMostUnknown)
    diagnostics.add({section.where.file, 0, 0},
                    fmt::format("{} more unknown keys in {}, allowed: the keys listed above", unknown - kMostUnknown, what));

  for (const Parameter& parameter : parameters) {
    const auto [entry, fresh] = arguments.slots_.try_emplace(parameter.name);
    SPECSIM_CHECK(fresh, "parameter {} twice in the table of {}", parameter.name, what);
    Arguments::Slot& slot = entry->second;
    slot.type = parameter.type;
    slot.where = section.where;
    slot.value.where = section.where;
    if (parameter.fallback && !parameter.fallback->empty()) {
      Diagnostics wrong_default;
      slot.present = fill(slot, default_of(parameter, what, section.where), parameter, wrong_default);
      SPECSIM_CHECK(wrong_default.empty(), "default of {} in {}: {}", parameter.name, what, wrong_default.list().front().message);
    }
    const Value* value = section.find(parameter.name);
    if (value != nullptr) {
      slot.where = value->where;
      slot.given = true;
      if (fill(slot, *value, parameter, diagnostics)) slot.present = true;
    } else if (!parameter.fallback && readable && !meant.contains(parameter.name)) {
      diagnostics.add(section.where,
                      fmt::format("{} lacks {}, allowed: {}", what, quote_for_message(parameter.name), allowed_text(parameter)));
    }
  }
  return arguments;
}

std::optional<double> read_number(const Value& value, const Interval& interval, const std::string& what,
                                  Diagnostics& diagnostics) {
  const auto x = as_number(value);
  if (x && interval.contains(*x)) return x;
  report(value, what, allowed_number("a number", interval), diagnostics);
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(const Value& value, const Interval& interval, const std::string& what,
                                         Diagnostics& diagnostics) {
  const auto n = as_integer(value);
  if (n && interval.contains(static_cast<double>(*n))) return n;
  std::string allowed = allowed_number("an integer", interval);
  // 1e30 is an integer and may even be in the interval: the mistake is its size.
  const auto x = as_number(value);
  if (!n && x && std::abs(*x) >= 0x1p62 && interval.contains(*x)) allowed += ", in 64 bits";
  report(value, what, allowed, diagnostics);
  return std::nullopt;
}

std::optional<std::string> read_text(const Value& value, const std::string& what, Diagnostics& diagnostics) {
  if (value.is_scalar()) return value.text;
  report(value, what, "a text", diagnostics);
  return std::nullopt;
}

}  // namespace specsim::config
