#include "sim/config/value.h"

#include "sim/base/files_read.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace specsim::config {

namespace {

// Bounds on what a file may cost. The parser holds every token of a top-level [list] before it hands out the first, so
// the characters that can start a token are counted beforehand; values and depth are counted as they come.
constexpr std::size_t max_bytes = std::size_t{64} << 20U;
constexpr std::size_t max_token_characters = std::size_t{1} << 22U;
constexpr std::size_t max_values = std::size_t{1} << 20U;
constexpr std::size_t max_depth = 100;
constexpr std::size_t max_open_brackets = 10000;  // counted in raw text, where a quoted bracket counts too: hence so many
constexpr std::size_t max_mistakes = 50;
constexpr std::size_t max_shown = 60;
constexpr std::size_t max_plain_key = 1000;  // yaml-cpp takes "key:" only up to 1024 bytes, "? key" at any length

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }
bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// ---- numbers

// [+-] digits [. digits] [e [+-] digits], at least one digit before e, cut into its pieces.
struct Decimal {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view exponent;  // with its sign
};

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

// YAML 1.1 takes 010 for 8, YAML 1.2 for 10: refused, since either guess surprises somebody.
bool has_leading_zero(const Decimal& decimal) { return decimal.whole.size() > 1 && decimal.whole.front() == '0'; }

std::string_view without_plus(std::string_view text) { return text.starts_with('+') ? text.substr(1) : text; }

std::optional<double> number_of(std::string_view text) {
  const auto decimal = split_decimal(text);
  if (!decimal || has_leading_zero(*decimal)) return std::nullopt;
  const std::string_view digits = without_plus(text);
  double x = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), x);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(x)) return std::nullopt;
  return x;
}

// Exact, without a double in between: a seed above 2^53 must keep its last digit, and 1e6 must be 1000000.
std::optional<std::int64_t> integer_of(std::string_view text) {
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

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// ---- the text before the parser sees it

// UTF-8 without a byte order mark, lines ending in \n alone: so a parser's position is an index into `text`.
struct Source {
  std::string text;
  bool usable = false;
};

// The length of the UTF-8 character at `at`, 0 where there is none (overlong, surrogate, cut off, beyond U+10FFFF).
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

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Refuses what the parser would misread without a word: it takes byte 4 for the end of the file, guesses UTF-16 from NULs
// and replaces broken UTF-8. Reports the first such place only: the next million would say the same.
Source prepare(std::string_view text, const std::string& name, Diagnostics& diagnostics) {
  Source source;
  Location where{name, 1, 1};
  if (text.size() > max_bytes) {
    diagnostics.add({name, 0, 0}, fmt::format("the text is larger than {0} bytes, allowed: at most {0} bytes", max_bytes));
    return source;
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    diagnostics.add(where, "the text is UTF-16 or UTF-32, allowed: UTF-8");
    return source;
  }
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
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
      diagnostics.add(where, "a carriage return stands alone, allowed: lines that end in a line feed");
      return source;
    }
    if ((byte < 0x20U && c != '\n' && c != '\t') || byte == 0x7FU) {
      diagnostics.add(where, fmt::format("control character 0x{:02x} found, allowed: printable text in UTF-8", byte));
      return source;
    }
    if (text.substr(at).starts_with(byte_order_mark)) {
      diagnostics.add(where, "a byte order mark stands inside the text, allowed: at its start only");
      return source;
    }
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (std::strchr("[]{},:?&*!\"'", c) != nullptr) ++token_characters;
    if (open > max_open_brackets || token_characters > max_token_characters) {
      diagnostics.add(where, open > max_open_brackets
                                 ? fmt::format("the text is nested too deep, allowed: at most {} levels", max_depth)
                                 : fmt::format("the text has too many values, allowed: at most {}", max_values));
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

// ---- from the parser's events to the tree

// Thrown through the parser when going on makes no sense; what is wrong has been reported by then.
struct Stop {};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view source, std::string name) : source_(source), name_(std::move(name)) {}

  [[nodiscard]] bool has_document() const { return documents_ > 0; }
  [[nodiscard]] Value take_root() { return std::move(root_); }
  [[nodiscard]] const std::vector<Diagnostic>& mistakes() const { return mistakes_; }
  [[nodiscard]] Diagnostic explain(const YAML::Exception& error) {
    if (error.mark.is_null()) return {{name_, 0, 0}, explain(error.msg, error.mark)};
    if (const auto tab = tab_in_indentation(error.mark)) return {*tab, "a tab is in the indentation, allowed: spaces"};
    return {locate(error.mark), explain(error.msg, error.mark)};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const bool marked = source_.substr(std::min(position(mark), source_.size())).starts_with("---");
    report(locate(mark), std::string(marked ? "a second document starts here" : "what stands here belongs to no value") +
                             ", allowed: one document");
    throw Stop();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Value value;
    if (wants_key()) {
      report(locate(mark), "a key is null (no value), allowed: a text");
      skip_field();
      return;
    }
    value.where = locate_null(mark);
    count(value.where);
    place(std::move(value));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    if (wants_key() || !in_skipped_field()) report(locate(mark), alias_message(mark));
    if (wants_key()) {
      skip_field();
      return;
    }
    Value value;
    value.where = locate(mark);
    count(value.where);
    place(std::move(value));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/, const std::string& text) override {
    // yaml-cpp says "!" for a quoted scalar and for one written with a lone "!".
    const bool lone_tag = tag == "!" && at(content_start(mark)) == '!';
    const bool quoted = tag == "!" && !lone_tag;
    if (quoted && !is_closed(content_start(mark))) {
      report(locate(mark), "a quoted text is not closed, allowed: a quote at its end");
      throw Stop();
    }
    if (lone_tag || (!quoted && !tag.empty() && tag != "?")) report_tag(mark);
    if (wants_key()) {
      take_key(mark, text, quoted);
      return;
    }
    Value value;
    value.kind = Kind::scalar;
    value.where = locate(mark);
    value.text = text;
    value.quoted = quoted;
    count(value.where);
    place(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value style) override {
    open(Kind::list, mark, tag, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value style) override {
    open(Kind::map, mark, tag, style);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Value value;
    bool flow = false;
    bool wants_key = false;
    bool skip = false;  // the field being read is wrong and already reported
    Field field;
    std::unordered_map<std::string, int> lines;  // of the keys so far
  };

  [[nodiscard]] char at(std::size_t position) const { return position < source_.size() ? source_[position] : '\0'; }
  static std::size_t position(const YAML::Mark& mark) { return mark.pos < 0 ? 0 : static_cast<std::size_t>(mark.pos); }

  // Columns count characters, as editors do; the parser counts bytes. Marks mostly move forward along a line, so the last
  // count is carried on: a file of one long line would cost its length squared otherwise.
  Location locate(const YAML::Mark& mark) {
    if (mark.is_null()) return {name_, 0, 0};
    const std::size_t end = std::min(position(mark), source_.size());
    const std::size_t start = end - std::min(end, static_cast<std::size_t>(std::max(mark.column, 0)));
    if (start != counted_start_ || end < counted_end_) {
      counted_start_ = start;
      counted_end_ = start;
      counted_ = 0;
    }
    for (; counted_end_ < end; ++counted_end_)
      if (!is_continuation(source_[counted_end_])) ++counted_;
    return {name_, mark.line + 1, counted_ + 1};
  }

  // Behind an anchor, where a scalar's own first character stands.
  [[nodiscard]] std::size_t content_start(const YAML::Mark& mark) const {
    std::size_t i = position(mark);
    if (at(i) != '&') return i;
    while (i < source_.size() && std::strchr(" \t\n", source_[i]) == nullptr) ++i;
    while (i < source_.size() && std::strchr(" \t\n", source_[i]) != nullptr) ++i;
    return i;
  }

  // The parser lets the end of the file close a text in single quotes where a line end comes before it.
  [[nodiscard]] bool is_closed(std::size_t from) const {
    const char mark = at(from);
    if (mark != '\'' && mark != '"') return true;  // | and > end with their indentation
    for (std::size_t i = from + 1; i < source_.size(); ++i) {
      if (mark == '"' && source_[i] == '\\') {
        ++i;
      } else if (source_[i] == mark) {
        if (mark == '"' || at(i + 1) != mark) return true;
        ++i;
      }
    }
    return false;
  }

  [[nodiscard]] std::string_view bits_at(std::size_t from) const {
    std::size_t to = from;
    while (to < source_.size() && std::strchr(" \t\n,[]{}", source_[to]) == nullptr) ++to;
    return source_.substr(from, to - from);
  }

  // A null that nobody wrote is marked where the next thing begins, often on a later line: its key or its dash is nearer.
  Location locate_null(const YAML::Mark& mark) {
    const bool written =
        at(content_start(mark)) == '~' || (is_null_word(bits_at(content_start(mark))) && !bits_at(content_start(mark)).empty());
    if (frames_.empty()) return locate(mark);
    const Frame& frame = frames_.back();
    if (frame.value.is_map()) {
      const Location here = locate(mark);
      return written && here.line == frame.field.where.line ? here : frame.field.where;
    }
    if (written || frame.flow) return locate(mark);
    int line = mark.line;
    std::size_t start = std::min(position(mark), source_.size());
    start -= std::min(start, static_cast<std::size_t>(std::max(mark.column, 0)));
    std::size_t end = std::min(position(mark), source_.size());
    while (true) {
      std::string_view text = source_.substr(start, end - start);
      for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) text = text.substr(0, i);
      const std::size_t last = text.find_last_not_of(" \t");
      if (last != std::string_view::npos)
        return text[last] == '-' ? Location{name_, line + 1, static_cast<int>(last) + 1} : locate(mark);
      if (start == 0) return locate(mark);
      end = start - 1;
      const std::size_t before = end == 0 ? std::string_view::npos : source_.rfind('\n', end - 1);
      start = before == std::string_view::npos ? 0 : before + 1;
      --line;
    }
  }

  [[nodiscard]] std::optional<Location> tab_in_indentation(const YAML::Mark& mark) const {
    if (!frames_.empty() && frames_.back().flow) return std::nullopt;  // indentation means nothing between brackets
    std::size_t start = std::min(position(mark), source_.size());
    start -= std::min(start, static_cast<std::size_t>(std::max(mark.column, 0)));
    for (std::size_t i = start; at(i) == ' ' || at(i) == '\t'; ++i)
      if (at(i) == '\t') return Location{name_, mark.line + 1, static_cast<int>(i - start) + 1};
    return std::nullopt;
  }

  [[nodiscard]] std::string alias_message(const YAML::Mark& mark) const {
    std::string_view word = bits_at(position(mark));
    if (!word.starts_with('*')) word = "*";  // some marks of the parser stand behind the star
    return fmt::format("alias {} is not supported, allowed: the value written out", show(word));
  }

  [[nodiscard]] std::string explain(const std::string& message, const YAML::Mark& mark) const {
    namespace Known = YAML::ErrorMsg;
    if (message == Known::UNKNOWN_ANCHOR) return alias_message(mark);
    if (message == Known::END_OF_SEQ_FLOW || message == Known::END_OF_MAP_FLOW) {
      const bool list = message == Known::END_OF_SEQ_FLOW;
      for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)  // NOLINT(modernize-loop-convert): from the innermost
        if (frame->flow && frame->value.is_list() == list)
          return fmt::format("the {} opened at {}:{} is not closed, allowed: \"{}\" behind its last value", list ? "list" : "map",
                             frame->value.where.line, frame->value.where.column, list ? "]" : "}");
    }
    if (message == Known::MAP_VALUE || message == Known::MAP_KEY)
      return "\":\" is out of place, allowed: one \"key: value\" in a line, or quotes around a text that has \": \"";
    if (message == Known::BLOCK_ENTRY) return "\"-\" is out of place, allowed: list items on their own lines below the key";
    if (message == Known::FLOW_END) return "a bracket is closed that was not opened, allowed: pairs of [] and {}";
    if (message == Known::END_OF_MAP || message == Known::END_OF_SEQ)
      return "what stands here belongs to no value, allowed: one value behind a key, and a map's keys in one column";
    if (message == Known::EOF_IN_SCALAR) return "a quoted text is not closed, allowed: a quote at its end";
    if (message == Known::UNKNOWN_TOKEN)
      return fmt::format("a value begins with {}, allowed: quotes around a text that begins so",
                         show(source_.substr(std::min(position(mark), source_.size()), 1)));
    if (message.starts_with(Known::INVALID_ESCAPE))
      return "a backslash in double quotes begins no known escape, allowed: \"\\\\\" for a backslash, or single quotes";
    std::string shown = lower(message);  // it may hold a piece of the text, or half a character of it
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return fmt::format("broken YAML ({}), allowed: YAML 1.2", shown);
  }

  [[nodiscard]] static std::string show(std::string_view text) { return quote_for_message(text); }

  void report(Location where, std::string message) {
    mistakes_.push_back({where, std::move(message)});
    if (mistakes_.size() < max_mistakes) return;
    mistakes_.push_back({std::move(where), fmt::format("{} mistakes so far, the rest of the text was not read", max_mistakes)});
    throw Stop();
  }

  void report_tag(const YAML::Mark& mark) {
    std::string_view word = bits_at(content_start(mark));
    if (!word.starts_with('!')) word = "!";
    report(locate(mark), fmt::format("tag {} is not supported, allowed: a value without a tag", show(word)));
  }

  void count(const Location& where) {
    if (++values_ <= max_values) return;
    report(where, fmt::format("the text has too many values, allowed: at most {}", max_values));
    throw Stop();
  }

  [[nodiscard]] bool wants_key() const { return !frames_.empty() && frames_.back().wants_key; }
  [[nodiscard]] bool in_skipped_field() const { return !frames_.empty() && frames_.back().skip; }

  void skip_field() {
    frames_.back().wants_key = false;
    frames_.back().skip = true;
  }

  void take_key(const YAML::Mark& mark, const std::string& text, bool quoted) {
    Frame& frame = frames_.back();
    const Location where = locate(mark);
    count(where);
    frame.wants_key = false;
    frame.field = {text, where, {}};
    if (text == "<<" && !quoted) {
      frame.skip = true;
      report(where, "merge key \"<<\" is not supported, allowed: the keys written out");
      return;
    }
    const auto [first, fresh] = frame.lines.emplace(text, where.line);
    if (!fresh) {
      frame.skip = true;
      report(where, fmt::format("key {} is given twice, first at line {}", show(text), first->second));
    }
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::EmitterStyle::value style) {
    const Location where = locate(mark);
    if (!tag.empty() && tag != "?") report_tag(mark);
    if (wants_key()) report(where, fmt::format("a key is a {}, allowed: a text", kind == Kind::list ? "list" : "map"));
    count(where);
    if (frames_.size() >= max_depth) {
      report(where, fmt::format("the text is nested too deep, allowed: at most {} levels", max_depth));
      throw Stop();
    }
    Frame frame;
    frame.value.kind = kind;
    frame.value.where = where;
    frame.flow = style == YAML::EmitterStyle::Flow;
    frame.wants_key = kind == Kind::map;
    frames_.push_back(std::move(frame));
  }

  void close() {
    Value value = std::move(frames_.back().value);
    frames_.pop_back();
    place(std::move(value));
  }

  void place(Value value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_list()) {
      frame.value.items.push_back(std::move(value));
    } else if (frame.wants_key) {
      skip_field();  // a list or a map as key, reported where it began
    } else {
      if (!frame.skip) {
        frame.field.value = std::move(value);
        frame.value.fields.push_back(std::move(frame.field));
      }
      frame.wants_key = true;
      frame.skip = false;
    }
  }

  std::string_view source_;
  std::string name_;
  std::vector<Frame> frames_;
  Value root_;
  int documents_ = 0;
  std::size_t values_ = 0;
  std::vector<Diagnostic> mistakes_;
  std::size_t counted_start_ = 0;
  std::size_t counted_end_ = 0;
  int counted_ = 0;
};

Value parse(std::string_view text, const std::string& name, bool may_be_empty, Diagnostics& diagnostics) {
  Value nothing;
  nothing.where = {name, 0, 0};
  const Source source = prepare(text, name, diagnostics);
  if (!source.usable) return nothing;
  TreeBuilder builder(source.text, name);
  try {
    std::istringstream stream(source.text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) continue;
  } catch (const Stop&) {
    for (const Diagnostic& mistake : builder.mistakes()) diagnostics.add(mistake.where, mistake.message);
    return nothing;
  } catch (const YAML::Exception& error) {
    // Alone: with the structure broken, other mistakes found on the way may be echoes of this one.
    Diagnostic mistake = builder.explain(error);
    diagnostics.add(std::move(mistake.where), std::move(mistake.message));
    return nothing;
  }
  for (const Diagnostic& mistake : builder.mistakes()) diagnostics.add(mistake.where, mistake.message);
  if (builder.has_document()) return builder.take_root();
  if (!may_be_empty) diagnostics.add({name, 0, 0}, "the file is empty, allowed: one YAML document");
  return nothing;
}

// ---- to text

// Narrower than YAML: what is left out is quoted, which is always right.
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
    } else if (text.substr(i).starts_with(byte_order_mark)) {
      result += "\\ufeff";
      i += byte_order_mark.size() - 1;
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string shortest(double x) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, x);
  return error == std::errc() ? std::string(buffer, end) : fmt::format("{:.17g}", x);
}

std::string scalar_text(const Value& value, bool canonical) {
  if (!canonical) return !value.quoted && is_plain_safe(value.text) ? value.text : quote(value.text);
  if (!value.quoted) {
    if (const auto n = integer_of(value.text)) return std::to_string(*n);
    if (const auto x = number_of(value.text)) return shortest(*x);
  }
  // zipf and "zipf" are one setting, 5 and "5" are two.
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
        out += key.size() > max_plain_key ? "? " + key + " : " : key + ": ";
        write(fields[i]->value, canonical, out);
      }
      out += '}';
      return;
    }
  }
}

// ---- paths

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

Value parse_text(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  return parse(text, name, true, diagnostics);
}

Value parse_file(const std::string& path, Diagnostics& diagnostics) {
  Value nothing;
  nothing.where = {path, 0, 0};
  const auto refuse = [&](const std::string& found, const std::string& allowed) {
    const std::string name = path.empty() ? "the file name is empty" : found;
    diagnostics.add({path, 0, 0}, name + ", allowed: " + allowed);
    return nothing;
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return refuse("it is a directory", "a YAML file");
  // Not by size beforehand: a pipe has none, and a device never ends.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return refuse("cannot be read: " + lower(std::strerror(errno)), "a readable YAML file");
  std::string text;
  char buffer[1U << 16U];
  while (text.size() <= max_bytes) {
    const std::size_t n = std::fread(buffer, 1, sizeof buffer, file.get());
    if (n == 0) break;
    text.append(buffer, n);
  }
  if (std::ferror(file.get()) != 0) return refuse("cannot be read: " + lower(std::strerror(errno)), "a readable YAML file");
  note_file_read(path, text);
  return parse(text, path, false, diagnostics);
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

void set_path(Value& root, std::string_view path, Value value, Diagnostics& diagnostics) {
  const Location where = value.where;
  set_path(root, path, std::move(value), where, diagnostics);
}

void set_path(Value& root, std::string_view path, Value value, const Location& where, Diagnostics& diagnostics) {
  const std::vector<std::string_view> parts = split_path(path);
  const std::string shown = quote_for_message(path);
  if (std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); })) {
    diagnostics.add(where, fmt::format("path {} has an empty part, allowed: keys joined by \".\"", shown));
    return;
  }
  if (parts.size() > max_depth) {
    diagnostics.add(where, fmt::format("path {} has {} parts, allowed: at most {}", shown, parts.size(), max_depth));
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
        diagnostics.add(where, fmt::format("path {} asks for item {} of {}, which is a list of {}, allowed: {}", shown,
                                           quote_for_message(part), so_far, here->items.size(), allowed));
        return;
      }
      here = &here->items[*n];
      continue;
    }
    if (here->is_scalar()) {
      diagnostics.add(
          where, fmt::format("path {} runs through {}, which is {}, allowed: a map or a list", shown, so_far, found_text(*here)));
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
  for (auto& [key, field] : fields) value.fields.push_back({std::move(key), field.where, std::move(field)});
  return value;
}

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

std::optional<double> as_number(std::string_view text) { return number_of(text); }
std::optional<std::int64_t> as_integer(std::string_view text) { return integer_of(text); }

std::optional<double> as_number(const Value& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  return number_of(value.text);
}

std::optional<std::int64_t> as_integer(const Value& value) {
  if (!value.is_scalar() || value.quoted) return std::nullopt;
  return integer_of(value.text);
}

std::string quote_for_message(std::string_view text) {
  if (text.size() <= max_shown) return quote(text);
  std::size_t end = max_shown;
  while (end > 0 && is_continuation(text[end])) --end;
  return quote(text.substr(0, end)) + "...";
}

std::string found_text(const Value& value) {
  if (value.is_null()) return "null (no value)";
  if (value.is_list()) return "a list";
  if (value.is_map()) return "a map";
  std::string shown = quote_for_message(value.text);
  if (value.quoted) return (reads_as_other_than_text(value.text) ? "the text " : "") + shown;
  if (value.text == "true" || value.text == "false") return value.text;
  if (value.text.size() <= max_shown) {
    const std::string word = lower(without_plus(value.text.starts_with('-') ? value.text.substr(1) : value.text));
    if (word == ".nan" || word == "nan") return value.text + " (not a number)";
    if (word == ".inf" || word == "inf") return value.text + " (not finite)";
    if (const auto decimal = split_decimal(value.text)) {
      if (has_leading_zero(*decimal)) return value.text + " (a leading zero)";
      return value.text + (number_of(value.text) ? "" : " (beyond the range of a double)");
    }
  }
  return shown;
}

}  // namespace specsim::config
