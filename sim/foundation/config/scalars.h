// How the characters of a scalar are read, and limits of a text: shared by the files of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace specsim::config {

// Limits of a YAML or JSON text.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxValues = std::size_t{1} << 20U;
constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxMistakes = 50;
constexpr std::size_t kMaxShown = 60;  // most characters of a text that a message shows

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// A byte of a UTF-8 character that is not its first.
inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }
inline bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}
inline std::string_view without_plus(std::string_view text) { return text.starts_with('+') ? text.substr(1) : text; }
// For ASCII letters only.
std::string lower(std::string_view text);

// [+-] digits [. digits] [e [+-] digits], at least one digit before e, cut into its pieces.
struct Decimal {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view exponent;  // the digits after e, with their sign
};

std::optional<Decimal> split_decimal(std::string_view text);

// YAML 1.1 reads 010 as 8, YAML 1.2 as 10. It is refused, since either choice would surprise somebody.
inline bool has_leading_zero(const Decimal& decimal) { return decimal.whole.size() > 1 && decimal.whole.front() == '0'; }

// The shortest decimal text that reads back as the same double.
std::string shortest(double x);
// The same as a person writes it: 1000000, not 1e+06.
std::string number_text(double x);

}  // namespace specsim::config
