#include "sim/foundation/config/scalars.h"
#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace specsim::config {

namespace {

constexpr std::size_t kMaxPlainKey = 1000;  // yaml-cpp accepts "key:" only up to 1024 bytes, "? key" at any length

// Stricter than YAML: everything else is quoted, which is always correct.
bool is_plain_safe(std::string_view text) {
  if (is_null_word(text) || text.back() == ' ') return false;
  const char first = text.front();
  const bool signed_start =
      (first == '-' || first == '+' || first == '.') && text.size() > 1 && (is_alnum(text[1]) || text[1] == '.');
  if (!is_alnum(first) && first != '_' && first != '/' && !(signed_start && text != "..." && !text.starts_with("..")))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alnum(c) || (c != '\0' && std::strchr("_./+- ", c) != nullptr); });
}

bool reads_as_other_than_text(std::string_view text) {
  return is_null_word(text) || split_decimal(text).has_value() || text == "true" || text == "false";
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20U || byte == 0x7FU) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2U && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0U) {
      result += fmt::format("\\x{:02x}",
                            static_cast<unsigned char>(text[++i]));  // the second set of control characters, which YAML forbids
    } else if (text.substr(i).starts_with(kByteOrderMark)) {
      result += "\\ufeff";
      i += kByteOrderMark.size() - 1;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string scalar_text(const Value& value, bool canonical) {
  if (!canonical) return !value.quoted && is_plain_safe(value.text) ? value.text : quote(value.text);
  if (!value.quoted) {
    if (const auto n = as_integer(value.text)) return std::to_string(*n);
    if (const auto x = as_number(value.text)) return shortest(*x);
  }
  // zipf and "zipf" are the same setting, 5 and "5" are different.
  const bool plain = is_plain_safe(value.text) && (!value.quoted || !reads_as_other_than_text(value.text));
  return plain ? value.text : quote(value.text);
}

void write(const Value& value, bool canonical, std::string& out) {
  switch (value.kind) {
    case Kind::null:
      out += "null";
      return;
    case Kind::scalar:
      out += scalar_text(value, canonical);
      return;
    case Kind::list:
      out += '[';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        write(value.items[i], canonical, out);
      }
      out += ']';
      return;
    case Kind::map: {
      std::vector<const Field*> fields;
      for (const Field& field : value.fields) fields.push_back(&field);
      if (canonical) std::sort(fields.begin(), fields.end(), [](const Field* a, const Field* b) { return a->key < b->key; });
      out += '{';
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (i > 0) out += ", ";
        const std::string key = is_plain_safe(fields[i]->key) ? fields[i]->key : quote(fields[i]->key);
        out += key.size() > kMaxPlainKey ? "? " + key + " : " : key + ": ";
        write(fields[i]->value, canonical, out);
      }
      out += '}';
      return;
    }
  }
}

}  // namespace

std::string to_flow_text(const Value& value) {
  std::string out;
  write(value, false, out);
  return out;
}

std::string to_canonical_text(const Value& value) {
  std::string out;
  write(value, true, out);
  return out;
}

std::string quote_for_message(std::string_view text) {
  if (text.size() <= kMaxShown) return quote(text);
  std::size_t end = kMaxShown;
  while (end > 0 && is_continuation(text[end])) --end;
  return quote(text.substr(0, end)) + "...";
}

std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& allowed) {
  return not_allowed(what + " " + quote_for_message(name), name, allowed);
}

std::string description_of_found(const Value& value) {
  if (value.is_null()) return "null (no value)";
  if (value.is_list()) return value.items.empty() ? "an empty list" : "a list";
  if (value.is_map()) return "a map";
  std::string shown = quote_for_message(value.text);
  if (value.quoted) return (reads_as_other_than_text(value.text) ? "the text " : "") + shown;
  if (value.text == "true" || value.text == "false") return value.text;
  if (value.text.size() <= kMaxShown) {
    const std::string word = lower(without_plus(value.text.starts_with('-') ? value.text.substr(1) : value.text));
    if (word == ".nan" || word == "nan") return value.text + " (not a number)";
    if (word == ".inf" || word == "inf") return value.text + " (not finite)";
    if (const auto decimal = split_decimal(value.text)) {
      if (has_leading_zero(*decimal)) return value.text + " (a leading zero)";
      return value.text + (as_number(value.text) ? "" : " (beyond the range of a double)");
    }
  }
  return shown;
}

std::vector<std::string> split_outside_brackets(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted || c == '"') continue;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != separator || depth > 0) continue;
    parts.emplace_back(text.substr(from, i - from));
    from = i + 1;
  }
  parts.emplace_back(text.substr(from));
  return parts;
}

}  // namespace specsim::config
