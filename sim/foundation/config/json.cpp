#include "sim/foundation/config/json.h"

#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/scalars.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>
#include <vector>

namespace specsim::config {

namespace {

using Json = nlohmann::json;

// Reads the text and counts the bytes that the parser has consumed, from which the place of an event follows.
class Reader {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Reader(const char* at, std::size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  Reader& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  Reader operator++(int) {
    const Reader before = *this;
    ++*this;
    return before;
  }
  friend bool operator!=(const Reader& a, const Reader& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  std::size_t* taken_;
};

// Builds the tree from the parser's events; each returns whether to continue.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, const std::string& name, int first_line, Diagnostics& diagnostics, const JsonLimits& limits)
      : text_(text), name_(&name), line_(first_line), diagnostics_(&diagnostics), limits_(limits) {}

  // NOLINTBEGIN(readability-identifier-naming): the parser's names
  bool null() { return add(token()); }
  bool boolean(bool value) {
    Value own = token();
    own.kind = Kind::scalar;
    own.text = value ? "true" : "false";
    return add(std::move(own));
  }
  bool number_integer(Json::number_integer_t /*value*/) { return number(); }
  bool number_unsigned(Json::number_unsigned_t /*value*/) { return number(); }
  bool number_float(Json::number_float_t /*value*/, const std::string& /*text*/) { return number(); }
  bool string(std::string& value) {
    Value own = token();
    own.kind = Kind::scalar;
    own.quoted = text_[begin_] == '"';
    own.text =
        own.quoted ? std::move(value) : std::string(text_.substr(begin_, text_.find_first_of(",]} \t\r\n", begin_) - begin_));
    return add(std::move(own));
  }
  bool binary(Json::binary_t& /*value*/) { return true; }  // JSON text has no binary values
  bool key(std::string& value) {
    Value own = token();
    OpenValue& map = open_.back();
    if (const Field* const first = map.field(value))
      return refuse(own.where, fmt::format("key {} is given twice, first at line {}, allowed: once", quote_for_message(value),
                                           first->where.line));
    map.value.fields.push_back({std::move(value), std::move(own.where), {}});
    return true;
  }
  bool start_object(std::size_t /*size*/) { return begin(Kind::map); }
  bool end_object() { return end(); }
  bool start_array(std::size_t /*size*/) { return begin(Kind::list); }
  bool end_array() { return end(); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& error) {
    std::string what = error.what();
    for (const std::string_view before : {"; last read", "syntax error while parsing "})
      if (const std::size_t at = what.find(before); at != std::string::npos)
        what = before.front() == ';' ? what.substr(0, at) + what.substr(std::min(what.find("; expected", at), what.size()))
                                     : what.substr(at + before.size());
    if (what.starts_with('[')) what = what.substr(what.find("] ") + 2);
    std::replace_if(
        what.begin(), what.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return refuse(place(position > 0 ? position - 1 : 0), fmt::format("this is not JSON ({}), allowed: JSON text", what));
  }
  // NOLINTEND(readability-identifier-naming)

  std::size_t* taken() { return &taken_; }
  Value take_root() { return std::move(root_); }

 private:
  // A list or map that is still open.
  struct OpenValue {
    Value value;
    std::unordered_set<std::string> keys = {};  // the keys of a map that has many, for fast lookup

    // The map's field with this key, or nullptr.
    const Field* field(const std::string& key) {
      constexpr std::size_t kMany = 32;
      const std::vector<Field>& fields = value.fields;
      if (fields.size() >= kMany) {
        if (keys.empty())
          for (const Field& one : fields) keys.insert(one.key);
        if (keys.insert(key).second) return nullptr;
      }
      const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& one) { return one.key == key; });
      return at == fields.end() ? nullptr : &*at;
    }
  };

  // The place (line and column) of a byte of the text; places must be requested in rising order. Columns count characters.
  Location place(std::size_t position) {
    for (; counted_ < std::min(position, text_.size()); ++counted_) {
      if (text_[counted_] == '\n') {
        ++line_;
        column_ = 1;
      } else if (!is_continuation(text_[counted_])) {
        ++column_;
      }
    }
    return {*name_, line_, column_};
  }
  // A value that begins at the token of this event; only white space, commas and colons come before it.
  Value token() {
    begin_ = std::min(text_.find_first_not_of(" \t\r\n,:", end_), text_.size());
    end_ = std::min(taken_, text_.size());
    Value value;
    value.where = place(begin_);
    return value;
  }
  bool number() {
    Value own = token();
    own.kind = Kind::scalar;
    const std::size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", begin_), text_.size());
    own.text = text_.substr(begin_, end - begin_);
    return add(std::move(own));
  }
  bool refuse(const Location& where, std::string message) {
    diagnostics_->add(where, std::move(message));
    return false;
  }
  bool counted(const Location& where) {
    return ++values_ <= limits_.values ||
           refuse(where, fmt::format("the text has too many values, allowed: at most {}", limits_.values));
  }
  bool begin(Kind kind) {
    Value own = token();
    own.kind = kind;
    if (open_.size() >= limits_.depth)
      return refuse(own.where, fmt::format("the text is nested too deep, allowed: at most {} levels", limits_.depth));
    if (!counted(own.where)) return false;
    // Lists may hold a million numbers: memory is reserved at once, since growing would need twice as much.
    if (kind == Kind::list) own.items.reserve(items_from(begin_ + 1));
    open_.push_back({std::move(own)});
    return true;
  }
  // Upper bound of the number of items of the list whose first item begins here; invalid text may end it earlier.
  [[nodiscard]] std::size_t items_from(std::size_t at) const {
    std::size_t items = 1;
    bool quoted = false;
    for (std::size_t depth = 0; at < text_.size(); ++at) {
      const char c = text_[at];
      if (c == '\\') ++at;
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && depth-- == 0) break;
      if (c == ',' && depth == 0) ++items;
    }
    return std::min(items, limits_.values);
  }
  bool end() {
    end_ = std::min(taken_, text_.size());
    Value own = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(own));
    return true;
  }
  bool add(Value value) {
    if (!counted(value.where)) return false;
    put(std::move(value));
    return true;
  }
  void put(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (Value& above = open_.back().value; above.is_list())
      above.items.push_back(std::move(value));
    else
      above.fields.back().value = std::move(value);
  }

  std::string_view text_;
  const std::string* name_;
  int line_;
  int column_ = 1;
  Diagnostics* diagnostics_;
  JsonLimits limits_;
  std::size_t taken_ = 0;    // bytes that the parser has consumed
  std::size_t counted_ = 0;  // bytes that line_ and column_ refer to
  std::size_t begin_ = 0;    // start of the last token
  std::size_t end_ = 0;      // where it ends, or one byte after
  std::size_t values_ = 0;
  std::vector<OpenValue> open_;  // the outermost first
  Value root_;
};

// Python's json writes Infinity, -Infinity and NaN, which the parser rejects; they are replaced by texts of the same length.
std::string without_infinities(std::string_view text) {
  std::string copy;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted || (c != 'I' && c != 'N' && c != '-')) continue;
    for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
      if (text.substr(at, word.size()) != word) continue;
      if (copy.empty()) copy = text;
      copy[at] = copy[at + word.size() - 1] = '"';
      at += word.size() - 1;
      break;
    }
  }
  return copy;
}

}  // namespace

Value parse_json(std::string_view text, const std::string& name, Diagnostics& diagnostics, int first_line,
                 const JsonLimits& limits) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  JsonBuilder builder(text, name, first_line, diagnostics, limits);
  const std::string changed = without_infinities(text);
  const char* const from = changed.empty() ? text.data() : changed.data();
  const Reader begin(from, builder.taken());
  const Reader end(from + text.size(), builder.taken());
  if (Json::sax_parse(begin, end, &builder)) return builder.take_root();
  Value nothing;
  nothing.where = {name, first_line, 0};
  return nothing;
}

Value parse_json_file(const std::string& path, Diagnostics& diagnostics) {
  try {
    return parse_json(read_regular_file(path, kMaxTextBytes), path, diagnostics);
  } catch (const ReadError& error) {
    diagnostics.add({path, 0, 0}, error.message("JSON file"));
  }
  return {};
}

void read_json_lines(const std::string& path, const Location& named, const std::string& allowed, Diagnostics& diagnostics,
                     const std::function<void(const Value& object, const Location& where)>& on_line) {
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const ReadError& error) {
    diagnostics.add(named, (named.file == path ? "" : path + ": ") + error.message("JSONL file"));
    return;
  }
  constexpr std::size_t kMostMistakes = 20;
  const std::size_t before = diagnostics.list().size();
  Location where{path, 0, 0};
  for (std::size_t from = 0; from < text.size() && diagnostics.list().size() < before + kMostMistakes;) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string_view line = std::string_view(text).substr(from, to - from);
    from = to + 1;
    ++where.line;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Diagnostics broken;
    const Value value = parse_json(line, path, broken, where.line);
    for (const Diagnostic& mistake : broken.list()) diagnostics.add(mistake.where, mistake.message + ", allowed: " + allowed);
    if (!broken.empty()) continue;
    if (value.is_map())
      on_line(value, where);
    else
      diagnostics.add(where, "this is not a JSON object, allowed: " + allowed);
  }
}

}  // namespace specsim::config
