#include "sim/serving/logs/json_text.h"

#include "sim/foundation/base/standard_library.h"
#include "sim/serving/logs/line_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace specsim::logs {

namespace {

constexpr std::size_t kMostDepth = 128;
constexpr std::size_t kMostValues = 4096;  // of a list or object, including nested values
constexpr std::size_t kLongestKey = 256;

// Keys under which loggers wrap a line: Docker and Fluentd, journald, several others, Google Cloud.
constexpr std::array<std::string_view, 5> kLogKeys = {"log", "MESSAGE", "message", "msg", "textPayload"};

struct Place {
  std::size_t reader;
  std::size_t figure;
  std::string_view parent;  // of "parent.key"
};

// The places of the figures under a key.
const std::multimap<std::string_view, Place>& places() {
  static const std::multimap<std::string_view, Place> all = [] {
    std::multimap<std::string_view, Place> made;
    for (std::size_t r = 0; r < readers().size(); ++r) {
      const Reader& reader = readers()[r];
      if (reader.form != Form::object && reader.form != Form::document) continue;
      for (std::size_t f = 0; f < reader.figures().size(); ++f) {
        const std::string_view key = reader.keyed[f].key;
        const std::size_t dot = key.find('.');
        const bool whole = dot == std::string_view::npos;
        made.emplace(whole ? key : key.substr(dot + 1), Place{r, f, whole ? std::string_view() : key.substr(0, dot)});
      }
    }
    return made;
  }();
  return all;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The quoted key before the colon at `colon`; "" if there is none.
std::string_view key_before(std::string_view line, std::size_t colon) {
  if (colon == std::string_view::npos || line[colon] != ':') return {};
  const std::string_view before = trimmed(line.substr(0, colon));
  if (before.size() < 2 || before.back() != '"') return {};
  const std::size_t from = before.rfind('"', before.size() - 2);
  return from == std::string_view::npos ? std::string_view() : before.substr(from + 1, before.size() - from - 2);
}

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void append_utf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xe0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace

std::string without_escapes(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text += raw[i];
      continue;
    }
    const char c = raw[++i];
    unsigned code = 0;
    if (c == 'u' && i + 4 < raw.size() &&
        std::from_chars(raw.data() + i + 1, raw.data() + i + 5, code, 16).ptr == raw.data() + i + 5) {
      append_utf8(text, code);
      i += 4;
    } else {
      text += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
  }
  return text;
}

bool JsonText::read(std::string_view line, JsonUser& user) {
  held_log_ = false;
  std::size_t at = 0;
  if (open() && !scan(line, at, user)) {  // it was cut, and the line is another text
    end(user);
    at = 0;
  }
  if (const std::size_t from = line.find_first_not_of(" \t");
      !open() && from != std::string_view::npos && line[from] == '"' &&
      key_before(line, line.find(':', from)) == line.substr(from + 1, line.find('"', from + 1) - from - 1)) {
    key_.clear();
    at_start_ = false;
    fields_alone_ = true;
    open_frame(false);
    if (!scan(line, at, user)) end(user);
  }
  while (!open()) {
    // An object begins with a key, or ends the line.
    at = line.find('{', at);
    if (at == std::string_view::npos) break;
    std::size_t behind = at + 1;
    while (behind < line.size() && is_space(line[behind])) ++behind;
    if (behind < line.size() && line[behind] != '"' && line[behind] != '\'') {
      ++at;
      continue;
    }
    at_start_ = line.find_first_not_of(" \t") == at;
    fields_alone_ = false;
    key_ = key_before(line, line.find_last_not_of(" \t", at == 0 ? 0 : at - 1));
    open_frame(false);
    ++at;
    if (!scan(line, at, user)) end(user);
  }
  return held_log_;
}

void JsonText::end(JsonUser& user) {
  if (fields_alone_ && frames_.size() == 1) close_frame(user);
  const bool wanted = std::any_of(frames_.begin(), frames_.end(), [](const Frame& frame) {
    return !frame.values.empty() || std::any_of(readers().begin(), readers().end(), [&](const Reader& reader) {
      return reader.form == Form::object && *reader.begins != '\0' && frame.key == reader.begins;
    });
  });
  frames_.clear();
  if (wanted) user.on_unread("an object of JSON that is incomplete");
}

// Continues reading from `at` up to the end of the document or of the line. False if it is no JSON; `at` is then after the valid
// part.
bool JsonText::scan(std::string_view line, std::size_t& at, JsonUser& user) {
  while (open()) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return true;
    const char c = line[at];
    const bool closes = c == (frames_.back().list ? ']' : '}');
    if (next_ == Next::colon) {
      if (c != ':') return false;
      next_ = Next::value;
      ++at;
    } else if (closes && next_ != Next::value && next_ != Next::key) {
      close_frame(user);
      ++at;
    } else if (next_ == Next::comma_or_end) {
      if (c != ',') return false;
      next_ = frames_.back().list ? Next::value_or_end : Next::key_or_end;
      ++at;
    } else if (c == '"' || c == '\'') {
      std::size_t stop = at + 1;
      while (stop < line.size() && line[stop] != c) stop += line[stop] == '\\' ? 2 : 1;
      if (stop >= line.size()) {  // strings do not continue on the next line
        at = line.size();
        return false;
      }
      const std::string_view raw = line.substr(at + 1, stop - at - 1);
      at = stop + 1;
      if (next_ == Next::key || next_ == Next::key_or_end) {
        key_ = raw.substr(0, kLongestKey);
        next_ = Next::colon;
      } else {
        take_text(raw, user);
        ++frames_.back().size;
        next_ = Next::comma_or_end;
      }
    } else if (next_ == Next::key || next_ == Next::key_or_end) {
      return false;
    } else if (c == '{' || c == '[') {
      if (frames_.size() == kMostDepth) return false;
      if (frames_.back().list) key_.clear();
      open_frame(c == '[');
      ++at;
    } else {
      const std::size_t stop = std::min(line.find_first_of(",]} \t\r", at), line.size());
      const std::string_view word = line.substr(at, stop - at);
      if (word.empty() || (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-')) return false;
      double value = 0.0;
      const auto [rest, error] = from_chars(word.data(), word.data() + word.size(), value);
      const bool number = error == std::errc() && rest == word.data() + word.size();
      at = stop;
      take_number(number ? value : std::numeric_limits<double>::quiet_NaN());
      ++frames_.back().size;
      next_ = Next::comma_or_end;
    }
  }
  return true;
}

void JsonText::open_frame(bool list) {
  frames_.emplace_back();
  frames_.back().list = list;
  frames_.back().key = key_;
  next_ = list ? Next::value_or_end : Next::key_or_end;
}

void JsonText::add_value(const Value& value) {
  std::vector<Value>& values = frames_.back().values;
  const Role role = readers()[value.reader].keyed[value.figure].role;
  if (role == Role::emitted_each)  // counted at once: an answer has many rounds
    for (Value& one : values)
      if (one.reader == value.reader && one.figure == value.figure && one.at == value.at) {
        one.value += value.value;
        return;
      }
  if (values.size() < kMostValues) values.push_back(value);
}

void JsonText::take_number(double value) {
  Frame& frame = frames_.back();
  if (frame.list) frame.last_number = value;
  const std::string_view key = frame.list ? std::string_view(frame.key) : std::string_view(key_);
  const std::string_view parent = frame.list ? std::string_view() : std::string_view(frame.key);
  const auto add = [&](const Place& place, std::size_t at) {
    const KeyedFigure& figure = readers()[place.reader].keyed[place.figure];
    if (figure.role == Role::emitted_each) {
      const bool good = value >= 0.0 && value <= static_cast<double>(kMostPositions);
      add_value({place.reader, place.figure, good ? static_cast<std::size_t>(value) : kMostPositions + 1, 1.0});
    } else if (value == value) {
      add_value({place.reader, place.figure, at, value * figure.scale});
    } else {
      add_value({place.reader, place.figure, at, value});
    }
  };
  const auto [first, last] = places().equal_range(key);
  for (auto place = first; place != last; ++place)
    if (place->second.parent.empty() || place->second.parent == parent) add(place->second, frame.list ? frame.size : 0);
  // {"0": 39, "3": 3}: a list without its zeros.
  if (frame.list || first != last) return;
  const auto [first_list, last_list] = places().equal_range(parent);
  if (first_list == last_list) return;
  if (const auto at = whole_number(key))
    for (auto place = first_list; place != last_list; ++place)
      if (readers()[place->second.reader].keyed[place->second.figure].role == Role::histogram) add(place->second, *at);
}

void JsonText::take_text(std::string_view raw, JsonUser& user) {
  Frame& frame = frames_.back();
  if (frame.list) {
    // Prometheus: "value": [time, "22"], or a list of such.
    const Frame* series = nullptr;
    for (std::size_t up = 2; up <= 3 && up <= frames_.size() && series == nullptr; ++up)
      if (!frames_[frames_.size() - up].series.empty()) series = &frames_[frames_.size() - up];
    if (series != nullptr && frame.size == 1) user.on_metric(frame.last_number, series->series, raw.substr(0, 64));
    return;
  }
  if (frame.key == "metric" && frames_.size() > 1) {
    std::string& series = frames_[frames_.size() - 2].series;
    if (series.size() > kLongestName) return;  // too long: refused when a value comes
    if (key_ == "__name__")
      series.insert(0, raw.substr(0, kLongestName));
    else
      series += fmt::format("{}{}=\"{}\"", series.find('{') == std::string::npos ? "{" : ",", key_, raw.substr(0, kLongestName));
    return;
  }
  if (key_ == "id") frame.id = raw.substr(0, kLongestKey);
  if (frames_.size() == 1 && at_start_ && std::find(kLogKeys.begin(), kLogKeys.end(), key_) != kLogKeys.end()) {
    held_log_ = true;
    user.on_log_text(without_escapes(raw));
  }
}

Report JsonText::report_of(const Frame& frame, std::size_t reader) const {
  Report report;
  for (const Value& one : frame.values)
    if (one.reader == reader) {
      const KeyedFigure& figure = readers()[reader].keyed[one.figure];
      if (!report.take(figure.role, one.value, one.at) && report.bad_figure.empty()) report.bad_figure = figure.key;
    }
  for (auto up = frames_.rbegin(); up != frames_.rend() && report.id.empty(); ++up) report.id = up->id;
  return report;
}

void JsonText::close_frame(JsonUser& user) {
  Frame& frame = frames_.back();
  if (frame.key == "metric" && frames_.size() > 1) {
    std::string& series = frames_[frames_.size() - 2].series;
    if (series.find('{') != std::string::npos) series += '}';
    if (series.starts_with('{')) series.clear();
  }
  const bool document = frames_.size() == 1;
  for (std::size_t r = 0; r < readers().size(); ++r) {
    const Reader& reader = readers()[r];
    if (frame.list || (reader.form != Form::object && !(document && reader.form == Form::document))) continue;
    const bool named = *reader.begins != '\0' && frame.key == reader.begins;
    if (*reader.begins != '\0' && !named) continue;
    if (frame.values.empty() && !named) continue;
    Report report = report_of(frame, r);
    if (!report.has(reader.needs().front()) && report.bad_figure.empty()) {
      if (named) user.on_unread(fmt::format("{} without numbers of rounds, draft tokens and accepted tokens", reader.begins));
      continue;
    }
    // more may follow
    if (report.bad_figure.empty() && !missing_figures(reader, report).empty() && !named && !document) continue;
    std::erase_if(frame.values, [](const Value& one) { return readers()[one.reader].form == Form::object; });
    user.on_report(reader, report);
    if (reader.form == Form::object) break;
  }
  Frame closed = std::move(frames_.back());
  frames_.pop_back();
  next_ = Next::comma_or_end;
  if (frames_.empty()) return;
  ++frames_.back().size;
  for (const Value& one : closed.values) add_value(one);
}

}  // namespace specsim::logs
