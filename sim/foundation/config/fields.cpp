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

}  // namespace specsim::config::detail
