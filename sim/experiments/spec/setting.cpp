#include "sim/experiments/spec/setting.h"

#include <fmt/format.h>

#include <type_traits>

namespace specsim::spec {

namespace {

config::Value value_of(const std::string& text, const Location& where) {
  config::Value value = config::scalar(text, where);
  value.quoted = config::as_number(text).has_value() || text == "true" || text == "false";
  return value;
}

template <class Number>
config::Value value_of(const Number& number, const Location& where) {
  return config::scalar(fmt::format("{}", number), where);
}

template <class Item>
config::Value value_of(const std::vector<Item>& items, const Location& where) {
  config::Value list;
  list.kind = config::Kind::list;
  list.where = where;
  for (const Item& item : items) list.items.push_back(value_of(item, where));
  return list;
}

}  // namespace

config::Value to_config(const Setting& setting, const Location& where) {
  return std::visit([&](const auto& own) { return value_of(own, where); }, setting);
}

}  // namespace specsim::spec
