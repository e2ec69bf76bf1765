#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/config/scalars.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

namespace specsim::config {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::optional<Decimal> split_decimal(std::string_view text) {
  Decimal decimal;
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(from, at - from);
  };
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) decimal.negative = text[at++] == '-';
  decimal.whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    decimal.fraction = digits();
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const std::size_t from = ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits().empty()) return std::nullopt;
    decimal.exponent = text.substr(from, at - from);
  }
  return at == text.size() ? std::optional(decimal) : std::nullopt;
}

std::optional<double> as_number(std::string_view text) {
  const auto decimal = split_decimal(text);
  if (!decimal || has_leading_zero(*decimal)) return std::nullopt;
  const std::string_view digits = without_plus(text);
  double x = 0.0;
  const auto [end, error] = from_chars(digits.data(), digits.data() + digits.size(), x);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(x)) return std::nullopt;
  return x;
}

// Exact, without conversion to double: a seed above 2^53 must keep its last digit, and 1e6 must be 1000000.
std::optional<std::int64_t> as_integer(std::string_view text) {
  const auto decimal = split_decimal(text);
  if (!decimal || has_leading_zero(*decimal)) return std::nullopt;
  std::string digits = std::string(decimal->whole) + std::string(decimal->fraction);
  const std::size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return 0;
  int exponent = 0;
  if (!decimal->exponent.empty()) {
    const std::string_view written = without_plus(decimal->exponent);
    if (std::from_chars(written.data(), written.data() + written.size(), exponent).ec != std::errc()) return std::nullopt;
  }
  std::int64_t shift = std::int64_t{exponent} - static_cast<std::int64_t>(decimal->fraction.size());
  while (digits.back() == '0') {
    digits.pop_back();
    ++shift;
  }
  digits.erase(0, first);
  if (shift < 0 || static_cast<std::int64_t>(digits.size()) + shift > 19) return std::nullopt;
  digits.append(static_cast<std::size_t>(shift), '0');
  if (decimal->negative) digits.insert(digits.begin(), '-');
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (error != std::errc()) return std::nullopt;
  return n;
}

std::optional<double> as_number(const Value& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  return as_number(value.text);
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  return as_integer(value.text);
}

std::string shortest(double x) {
  char buffer[32];
  const auto [end, error] = to_chars(buffer, buffer + sizeof buffer, x);
  return error == std::errc() ? std::string(buffer, end) : fmt::format("{:.17g}", x);
}

std::string number_text(double x) {
  if (std::abs(x) < 1e15 && x == std::floor(x)) return fmt::format("{:.0f}", x == 0.0 ? 0.0 : x);
  return shortest(x);
}

}  // namespace specsim::config
