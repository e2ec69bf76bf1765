#include "sim/lab/llm/text_pieces.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace specsim::llm {

namespace {

enum class Class : std::uint8_t { letter, number, space, other };

Class class_of(std::int32_t code) {
  if ((code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
      (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
      code == 0x3000)
    return Class::space;
  if (code < 0) return Class::other;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Class::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Class::number;
    default:
      return Class::other;
  }
}

struct Character {
  std::size_t begin = 0;  // byte
  std::int32_t code = -1;
  Class kind = Class::other;
};

// The code point at `at` and its number of bytes; -1 for a byte that begins no code point.
std::pair<std::int32_t, std::size_t> code_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t code = -1;
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                     static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (size <= 0) return {-1, 1};
  return {code, static_cast<std::size_t>(size)};
}

std::vector<Character> read_characters(std::string_view text) {
  std::vector<Character> all;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = code_at(text, at);
    all.push_back({at, code, class_of(code)});
    at += size;
  }
  return all;
}

// Finds the end of a match that begins at a place, counted in characters.
class Matcher {
 public:
  Matcher(const std::vector<Character>& text, SplitPattern pattern) : text_(text), pattern_(pattern) {}

  [[nodiscard]] std::size_t match(std::size_t at) const {
    if (const std::size_t end = contraction(at)) return end;
    const bool gpt2 = pattern_ == SplitPattern::gpt2;
    // One character before a word: a space, or with the later expressions anything except a letter, a digit or a line end.
    const bool leads = gpt2 ? code(at) == ' ' : kind(at) != Class::letter && kind(at) != Class::number && !ends_line(at);
    const std::size_t word = at + (leads ? 1 : 0);
    if (is(word, Class::letter)) return run(word, Class::letter);
    if (gpt2 && is(word, Class::number)) return run(word, Class::number);
    if (is(at, Class::number)) {
      const std::size_t most = pattern_ == SplitPattern::llama3 ? 3 : 1;
      return std::min(run(at, Class::number), at + most);
    }
    const std::size_t sign = at + (code(at) == ' ' ? 1 : 0);
    if (is(sign, Class::other)) {
      std::size_t end = run(sign, Class::other);
      while (!gpt2 && end < text_.size() && ends_line(end)) ++end;
      return end;
    }
    const std::size_t end = run(at, Class::space);
    if (!gpt2)
      for (std::size_t last = end; last > at; --last)
        if (ends_line(last - 1)) return last;
    // The last space before a word belongs to the word.
    return end < text_.size() && end - at > 1 ? end - 1 : end;
  }

 private:
  [[nodiscard]] std::int32_t code(std::size_t at) const { return at < text_.size() ? text_[at].code : -1; }
  [[nodiscard]] Class kind(std::size_t at) const { return text_[at].kind; }
  [[nodiscard]] bool is(std::size_t at, Class kind) const { return at < text_.size() && text_[at].kind == kind; }
  [[nodiscard]] bool ends_line(std::size_t at) const { return text_[at].code == '\r' || text_[at].code == '\n'; }
  [[nodiscard]] std::size_t run(std::size_t at, Class kind) const {
    while (is(at, kind)) ++at;
    return at;
  }
  [[nodiscard]] std::int32_t folded(std::size_t at) const {
    const std::int32_t c = code(at);
    if (pattern_ == SplitPattern::gpt2) return c;
    constexpr std::int32_t kLongS = 0x17F;  // folds to s
    return c == kLongS ? 's' : c >= 'A' && c <= 'Z' ? c + 32 : c;
  }
  // 0 if there is none.
  [[nodiscard]] std::size_t contraction(std::size_t at) const {
    if (code(at) != '\'') return 0;
    const std::int32_t first = folded(at + 1);
    const std::int32_t second = folded(at + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return at + 3;
    return 0;
  }

  const std::vector<Character>& text_;
  SplitPattern pattern_;
};

}  // namespace

std::vector<std::string> split(std::string_view text, SplitPattern pattern) {
  const std::vector<Character> all = read_characters(text);
  const Matcher matcher(all, pattern);
  const auto byte = [&](std::size_t at) { return at < all.size() ? all[at].begin : text.size(); };
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = matcher.match(at);
    pieces.emplace_back(text.substr(byte(at), byte(end) - byte(at)));
    at = end;
  }
  return pieces;
}

std::vector<std::string> split_digits(std::string_view text, bool each) {
  const std::vector<Character> all = read_characters(text);
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const bool digit = all[at].kind == Class::number;
    const bool goes_on = at > 0 && digit == (all[at - 1].kind == Class::number) && !(digit && each);
    if (!goes_on) pieces.emplace_back();
    const std::size_t end = at + 1 < all.size() ? all[at + 1].begin : text.size();
    pieces.back() += text.substr(all[at].begin, end - all[at].begin);
  }
  return pieces;
}

std::string bytes_as_text(std::string_view bytes) {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    std::int32_t next = 256;  // for bytes without a printable character of Latin-1
    for (std::int32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      std::array<utf8proc_uint8_t, 4> encoded{};
      const auto size = utf8proc_encode_char(printable ? byte : next++, encoded.data());
      made[static_cast<std::size_t>(byte)].assign(encoded.begin(), encoded.begin() + size);
    }
    return made;
  }();
  std::string text;
  for (const char byte : bytes) text += table[static_cast<unsigned char>(byte)];
  return text;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at < text.size(); at += all.back().size()) all.push_back(text.substr(at, code_at(text, at).second));
  return all;
}

std::string compose(std::string_view text) {
  utf8proc_uint8_t* made = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) return std::string(text);  // no UTF-8
  std::string composed(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);  // NOLINT(cppcoreguidelines-no-malloc): the library's own
  return composed;
}

bool is_space(std::string_view character) { return class_of(code_at(character, 0).first) == Class::space; }

}  // namespace specsim::llm
