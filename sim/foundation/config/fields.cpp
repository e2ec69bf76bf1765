#include "sim/foundation/config/fields.h"

#include "sim/foundation/config/scalars.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace specsim::config::detail {

std::string text_of(bool value) { return value ? "true" : "false"; }

std::string text_of(double value) { return number_text(value); }

std::string text_of(const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number_text(value));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string text_of(const std::vector<std::vector<double>>& rows) {
  std::vector<std::string> texts;
  for (const std::vector<double>& row : rows) texts.push_back(text_of(row));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

void apply(Key& key, Times rule) {
  key.factor = rule.factor;
  std::optional<std::string>& fallback = key.parameter.fallback;
  const std::optional<double> initial = fallback ? as_number(*fallback) : std::nullopt;
  constexpr const char* kWithoutRounding = "{:.15g}";  // 1e-5 / 1e-6 is not quite 10
  if (initial) fallback = number_text(*as_number(fmt::format(kWithoutRounding, *initial / rule.factor)));
}

}  // namespace specsim::config::detail
