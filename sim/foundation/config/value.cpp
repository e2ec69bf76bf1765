#include "sim/foundation/config/value.h"

#include "sim/foundation/config/scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace specsim::config {

namespace {

std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', from)) {
    parts.push_back(path.substr(from, dot - from));
    from = dot + 1;
  }
  parts.push_back(path.substr(from));
  return parts;
}

std::optional<std::size_t> item_number(std::string_view text, std::size_t size) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n >= size) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return n;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  if (!is_map()) return nullptr;
  for (const Field& field : fields)
    if (field.key == key) return &field.value;
  return nullptr;
}

Value* Value::find(std::string_view key) {
  for (Field& field : fields)
    if (field.key == key) return &field.value;
  return nullptr;
}

const Value* find_path(const Value& root, std::string_view path) {
  const Value* value = &root;
  for (const std::string_view part : split_path(path)) {
    if (value->is_list()) {
      const auto n = item_number(part, value->items.size());
      value = n ? &value->items[*n] : nullptr;
    } else {
      value = value->find(part);
    }
    if (value == nullptr) return nullptr;
  }
  return value;
}

void set_path(Value& root, std::string_view path, Value value, const Location& where, Diagnostics& diagnostics) {
  const std::vector<std::string_view> parts = split_path(path);
  const std::string shown = quote_for_message(path);
  if (std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); })) {
    diagnostics.add(where, fmt::format("path {} has an empty part, allowed: keys joined by \".\"", shown));
    return;
  }
  if (parts.size() > kMaxDepth) {
    diagnostics.add(where, fmt::format("path {} has {} parts, allowed: at most {}", shown, parts.size(), kMaxDepth));
    return;
  }
  Value* here = &root;
  for (const std::string_view part : parts) {
    const std::string so_far =
        here == &root ? "the whole" : quote_for_message(path.substr(0, static_cast<std::size_t>(part.data() - path.data()) - 1));
    if (here->is_list()) {
      const auto n = item_number(part, here->items.size());
      if (!n) {
        const std::string allowed =
            here->items.empty() ? "no item, it is empty" : fmt::format("an item from 0 to {}", here->items.size() - 1);
        diagnostics.add(where, fmt::format("path {} names item {} of {}, which is a list of {}, allowed: {}", shown,
                                           quote_for_message(part), so_far, here->items.size(), allowed));
        return;
      }
      here = &here->items[*n];
      continue;
    }
    if (here->is_scalar()) {
      diagnostics.add(where, fmt::format("path {} runs through {}, which is {}, allowed: a map or a list", shown, so_far,
                                         description_of_found(*here)));
      return;
    }
    if (here->is_null()) {
      here->kind = Kind::map;
      here->where = where;
    }
    auto field = std::find_if(here->fields.begin(), here->fields.end(), [&](const Field& f) { return f.key == part; });
    if (field == here->fields.end()) {
      Field fresh;
      fresh.key = std::string(part);
      fresh.where = where;
      here->fields.push_back(std::move(fresh));
      field = here->fields.end() - 1;
    }
    if (&part == &parts.back()) field->where = where;
    here = &field->value;
  }
  *here = std::move(value);
}

Value scalar(std::string text, Location where) {
  Value value;
  value.kind = Kind::scalar;
  value.where = std::move(where);
  value.text = std::move(text);
  return value;
}

Value map(std::vector<std::pair<std::string, Value>> fields, Location where) {
  Value value;
  value.kind = Kind::map;
  value.where = std::move(where);
  for (std::pair<std::string, Value>& field : fields)
    value.fields.push_back({std::move(field.first), field.second.where, std::move(field.second)});
  return value;
}

}  // namespace specsim::config
