#include "sim/foundation/base/whole_file.h"
#include "sim/foundation/config/scalars.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/config/yaml_source.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace specsim::config {

namespace {

// Thrown through the parser if continuing makes no sense; the mistake has been reported by then.
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
    report(locate(mark),
           std::string(marked ? "a second document starts here" : "this text belongs to no value") + ", allowed: one document");
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
    // yaml-cpp reports the tag "!" for a quoted scalar and for one written with a lone "!".
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
    bool skip = false;  // the present field is wrong and already reported
    Field field;
    std::unordered_map<std::string, int> lines;  // [key]: the line of its first occurrence
  };

  [[nodiscard]] char at(std::size_t position) const { return position < source_.size() ? source_[position] : '\0'; }
  static std::size_t position(const YAML::Mark& mark) { return mark.pos < 0 ? 0 : static_cast<std::size_t>(mark.pos); }

  // Columns count characters, as editors do; the parser counts bytes. Marks mostly move forward along a line, so the last count
  // is kept: otherwise a file of one long line would take time proportional to its length squared.
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

  // The position of a scalar's first character, after an anchor if there is one.
  [[nodiscard]] std::size_t content_start(const YAML::Mark& mark) const {
    std::size_t i = position(mark);
    if (at(i) != '&') return i;
    while (i < source_.size() && std::strchr(" \t\n", source_[i]) == nullptr) ++i;
    while (i < source_.size() && std::strchr(" \t\n", source_[i]) != nullptr) ++i;
    return i;
  }

  // The parser accepts the end of the file as the end of a single-quoted text if a line end comes before it.
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

  // The mark of a blank null is where the next thing begins, often on a later line; its key or its dash is nearer.
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
    if (!frames_.empty() && frames_.back().flow) return std::nullopt;  // indentation has no meaning between brackets
    std::size_t start = std::min(position(mark), source_.size());
    start -= std::min(start, static_cast<std::size_t>(std::max(mark.column, 0)));
    for (std::size_t i = start; at(i) == ' ' || at(i) == '\t'; ++i)
      if (at(i) == '\t') return Location{name_, mark.line + 1, static_cast<int>(i - start) + 1};
    return std::nullopt;
  }

  [[nodiscard]] std::string alias_message(const YAML::Mark& mark) const {
    std::string_view word = bits_at(position(mark));
    if (!word.starts_with('*')) word = "*";  // the parser sets some marks after the star
    return fmt::format("alias {} is not supported, allowed: the value written out", show(word));
  }

  [[nodiscard]] std::string explain(const std::string& message, const YAML::Mark& mark) const {
    namespace Known = YAML::ErrorMsg;
    if (message == Known::UNKNOWN_ANCHOR) return alias_message(mark);
    if (message == Known::END_OF_SEQ_FLOW || message == Known::END_OF_MAP_FLOW) {
      const bool list = message == Known::END_OF_SEQ_FLOW;
      for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)  // NOLINT(modernize-loop-convert): from the innermost
        if (frame->flow && frame->value.is_list() == list)
          return fmt::format("the {} opened at {}:{} is not closed, allowed: \"{}\" after its last value", list ? "list" : "map",
                             frame->value.where.line, frame->value.where.column, list ? "]" : "}");
    }
    if (message == Known::MAP_VALUE || message == Known::MAP_KEY)
      return "\":\" is out of place, allowed: one \"key: value\" per line, or quotes around a text that has \": \"";
    if (message == Known::BLOCK_ENTRY) return "\"-\" is out of place, allowed: list items on their own lines below the key";
    if (message == Known::FLOW_END) return "a bracket is closed that was not opened, allowed: pairs of [] and {}";
    if (message == Known::END_OF_MAP || message == Known::END_OF_SEQ)
      return "this text belongs to no value, allowed: one value after a key, and a map's keys in one column";
    if (message == Known::EOF_IN_SCALAR) return "a quoted text is not closed, allowed: a quote at its end";
    if (message == Known::UNKNOWN_TOKEN)
      return fmt::format("a value begins with {}, allowed: quotes around a text that begins so",
                         show(source_.substr(std::min(position(mark), source_.size()), 1)));
    if (message.starts_with(Known::INVALID_ESCAPE))
      return "a backslash in double quotes begins no known escape, allowed: \"\\\\\" for a backslash, or single quotes";
    std::string shown = lower(message);  // it may contain a piece of the text, or half a character of it
    std::replace_if(
        shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return fmt::format("broken YAML ({}), allowed: YAML 1.2", shown);
  }

  [[nodiscard]] static std::string show(std::string_view text) { return quote_for_message(text); }

  void report(Location where, std::string message) {
    mistakes_.push_back({where, std::move(message)});
    if (mistakes_.size() < kMaxMistakes) return;
    mistakes_.push_back({std::move(where), fmt::format("{} mistakes so far, the rest of the text was not read", kMaxMistakes)});
    throw Stop();
  }

  void report_tag(const YAML::Mark& mark) {
    std::string_view word = bits_at(content_start(mark));
    if (!word.starts_with('!')) word = "!";
    report(locate(mark), fmt::format("tag {} is not supported, allowed: a value without a tag", show(word)));
  }

  void count(const Location& where) {
    if (++values_ <= kMaxValues) return;
    report(where, fmt::format("the text has too many values, allowed: at most {}", kMaxValues));
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
      report(where, fmt::format("key {} is given twice, first at line {}, allowed: once", show(text), first->second));
    }
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::EmitterStyle::value style) {
    const Location where = locate(mark);
    if (!tag.empty() && tag != "?") report_tag(mark);
    if (wants_key()) report(where, fmt::format("a key is a {}, allowed: a text", kind == Kind::list ? "list" : "map"));
    count(where);
    if (frames_.size() >= kMaxDepth) {
      report(where, fmt::format("the text is nested too deep, allowed: at most {} levels", kMaxDepth));
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

Value parse_yaml(std::string_view text, const std::string& name, bool may_be_empty, Diagnostics& diagnostics) {
  Value nothing;
  nothing.where = {name, 0, 0};
  const YamlSource source = prepare_yaml(text, name, diagnostics);
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
    // Reported alone: with a broken structure, other mistakes found on the way may be consequences of this one.
    Diagnostic mistake = builder.explain(error);
    diagnostics.add(std::move(mistake.where), std::move(mistake.message));
    return nothing;
  }
  for (const Diagnostic& mistake : builder.mistakes()) diagnostics.add(mistake.where, mistake.message);
  if (builder.has_document()) return builder.take_root();
  if (!may_be_empty) diagnostics.add({name, 0, 0}, "the file is empty, allowed: one YAML document");
  return nothing;
}

}  // namespace

Value parse_text(const std::string& text, const std::string& name, Diagnostics& diagnostics) {
  return parse_yaml(text, name, true, diagnostics);
}

Value parse_file(const std::string& path, Diagnostics& diagnostics) {
  try {
    return parse_yaml(read_whole_file(path, kMaxTextBytes), path, false, diagnostics);
  } catch (const ReadError& error) {
    diagnostics.add({path, 0, 0}, error.message("YAML file"));
  }
  Value nothing;
  nothing.where = {path, 0, 0};
  return nothing;
}

}  // namespace specsim::config
