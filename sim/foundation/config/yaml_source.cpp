#include "sim/foundation/config/yaml_source.h"

#include "sim/foundation/config/scalars.h"

#include <fmt/format.h>

#include <cstring>

namespace specsim::config {

namespace {

// The parser keeps every token of a top-level [list] before it returns the first, so the characters that can start a token are
// counted beforehand. Values and depth are counted during parsing.
constexpr std::size_t kMaxTokenCharacters = std::size_t{1} << 22U;
constexpr std::size_t kMaxOpenBrackets = 10000;  // counted in raw text, including quoted brackets, hence so many

// The length of the UTF-8 character at `at`; 0 if it is invalid (overlong, surrogate, cut off, beyond U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(at);
  const auto follows = [&](std::size_t i) { return (byte(at + i) & 0xC0U) == 0x80U; };
  if (lead < 0x80U) return 1;
  if (lead >= 0xC2U && lead <= 0xDFU) return follows(1) ? 2 : 0;
  if (lead >= 0xE0U && lead <= 0xEFU) {
    if (!follows(1) || !follows(2)) return 0;
    if (lead == 0xE0U && byte(at + 1) < 0xA0U) return 0;
    if (lead == 0xEDU && byte(at + 1) > 0x9FU) return 0;
    return 3;
  }
  if (lead >= 0xF0U && lead <= 0xF4U) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (lead == 0xF0U && byte(at + 1) < 0x90U) return 0;
    if (lead == 0xF4U && byte(at + 1) > 0x8FU) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

YamlSource prepare_yaml(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  YamlSource source;
  Location where{name, 1, 1};
  if (text.size() > kMaxTextBytes) {
    diagnostics.add({name, 0, 0}, fmt::format("the text is larger than {0} bytes, allowed: at most {0} bytes", kMaxTextBytes));
    return source;
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    diagnostics.add(where, "the text is UTF-16 or UTF-32, allowed: UTF-8");
    return source;
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  source.text.reserve(text.size());
  std::size_t open = 0;
  std::size_t token_characters = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      diagnostics.add(where, fmt::format("byte 0x{:02x} is not UTF-8, allowed: text in UTF-8", byte));
      return source;
    }
    if (c == '\r') {
      if (at + 1 < text.size() && text[at + 1] == '\n') {
        ++at;
        continue;
      }
      diagnostics.add(where, "a carriage return without a line feed, allowed: lines that end in a line feed");
      return source;
    }
    if ((byte < 0x20U && c != '\n' && c != '\t') || byte == 0x7FU) {
      diagnostics.add(where, fmt::format("control character 0x{:02x} found, allowed: printable text in UTF-8", byte));
      return source;
    }
    if (text.substr(at).starts_with(kByteOrderMark)) {
      diagnostics.add(where, "a byte order mark is inside the text, allowed: at its start only");
      return source;
    }
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (std::strchr("[]{},:?&*!\"'", c) != nullptr) ++token_characters;
    if (open > kMaxOpenBrackets || token_characters > kMaxTokenCharacters) {
      diagnostics.add(where, open > kMaxOpenBrackets
                                 ? fmt::format("the text is nested too deep, allowed: at most {} levels", kMaxDepth)
                                 : fmt::format("the text has too many values, allowed: at most {}", kMaxValues));
      return source;
    }
    source.text.append(text.substr(at, length));
    at += length;
    if (c == '\n') {
      ++where.line;
      where.column = 1;
    } else {
      ++where.column;
    }
  }
  source.usable = true;
  return source;
}

}  // namespace specsim::config
