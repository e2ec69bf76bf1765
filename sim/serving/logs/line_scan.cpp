#include "sim/serving/logs/line_scan.h"

#include "sim/foundation/base/standard_library.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

namespace specsim::logs {

namespace {

// Reads the number at the start of the text and removes it.
std::optional<double> take_number(std::string_view& text) {
  const std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return std::nullopt;
  double x = 0.0;
  const char* const begin = text.data() + from;
  const auto [end, error] = from_chars(begin, text.data() + text.size(), x);
  if (error != std::errc() || !(x >= 0.0 && x <= kLargestNumber)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return x;
}

// Whether the text begins with a number that take_number() refuses.
bool begins_with_bad_number(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return false;
  text.remove_prefix(from);
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  if (text.empty()) return false;
  // Compared as a whole word, because many lines begin with "INFO".
  std::string word;
  for (const char c : text.substr(0, 9)) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word == "nan" || word == "inf" || word == "infinity") return true;
  return std::isdigit(static_cast<unsigned char>(text.front())) != 0 && (negative || !take_number(text));
}

// Reads a label at the start of the text, `name="value"` with escapes, and removes it together with a following comma; nothing if
// the text does not begin with a label.
struct Label {
  std::string_view name;
  std::string_view value;  // with its quotation marks
};
std::optional<Label> take_label(std::string_view& text) {
  const std::size_t from = text.find_first_not_of(" \t");
  const std::size_t equals = text.find("=\"");
  if (from == std::string_view::npos || equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(from, equals - from);
  if (name.find_first_of("{},\"\\") != std::string_view::npos) return std::nullopt;
  std::size_t end = equals + 2;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) return std::nullopt;
  const Label label{name, text.substr(equals + 1, end - equals)};
  text.remove_prefix(end + 1);
  const std::size_t next = text.find_first_not_of(" \t");
  text.remove_prefix(next == std::string_view::npos ? text.size() : next);
  if (text.starts_with(',')) text.remove_prefix(1);
  return label;
}

}  // namespace

std::optional<std::string_view> text_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  auto rest = text_after(line, key);
  return rest ? take_number(*rest) : std::nullopt;
}

std::optional<double> count_after(std::string_view line, std::string_view key) {
  const auto x = number_after(line, key);
  return x && *x == std::floor(*x) ? x : std::nullopt;
}

std::optional<std::vector<double>> rates_after(std::string_view line, std::string_view key) {
  std::vector<double> rates;
  auto rest = text_after(line, key);
  while (rest) {
    if (begins_with_bad_number(*rest)) return std::nullopt;
    const auto x = take_number(*rest);
    if (!x) break;
    if (*x > 1.0 || rates.size() == kMostPositions) return std::nullopt;
    rates.push_back(*x);
    const std::size_t next = rest->find_first_not_of(" \t");
    if (next == std::string_view::npos || (*rest)[next] != ',') break;
    rest->remove_prefix(next + 1);
  }
  return rates;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") + 1 - from);
}

std::optional<MetricLine> metric_line(std::string_view line, std::string_view prefix) {
  const std::size_t at = line.find(prefix);
  if (at == std::string_view::npos || line.substr(0, at).find('#') != std::string_view::npos) return std::nullopt;
  line.remove_prefix(at);
  const std::size_t end = line.find_first_of("{ \t");
  if (end == std::string_view::npos) return std::nullopt;
  MetricLine read;
  read.metric = line.substr(0, end);
  read.beginning = read.metric.ends_with("_created");
  if (read.beginning) read.metric.resize(read.metric.size() - 8);
  if (read.metric.ends_with("_total")) read.metric.resize(read.metric.size() - 6);
  line.remove_prefix(end);
  if (line.front() == '{') {
    std::string_view rest = line.substr(1);  // a value may contain braces, and an exemplar after the value does
    while (take_label(rest)) continue;
    const std::size_t close = rest.find_first_not_of(" \t");
    if (close == std::string_view::npos || rest[close] != '}') return std::nullopt;
    rest.remove_prefix(close + 1);
    read.labels = line.substr(0, line.size() - rest.size());
    line = rest;
  }
  // The Prometheus page prints a bar before the value, promtool an arrow.
  if (const std::size_t from = line.find_first_not_of(" \t|=>\""); from != std::string_view::npos) line.remove_prefix(from);
  const auto value = take_number(line);
  if (!value && !begins_with_bad_number(line)) return std::nullopt;
  read.value = value.value_or(std::numeric_limits<double>::quiet_NaN());
  // Milliseconds in Prometheus' text, seconds in OpenMetrics, "@[seconds]" by promtool.
  constexpr double kLatestSeconds = 1e11;
  if (const std::size_t from = line.find_first_not_of(" \t@["); from != std::string_view::npos) line.remove_prefix(from);
  const auto time = value ? take_number(line) : std::nullopt;
  read.time = !time ? std::numeric_limits<double>::quiet_NaN() : *time < kLatestSeconds ? *time : *time / 1000.0;
  return read;
}

std::optional<std::string> MetricLine::label(std::string_view name) const {
  std::string_view rest = std::string_view(labels).substr(labels.empty() ? 0 : 1);
  while (const auto label = take_label(rest))
    if (label->name == name) return std::string(label->value);
  return std::nullopt;
}

std::string MetricLine::labels_without(std::initializer_list<std::string_view> names) const {
  std::string kept;
  std::string_view rest = std::string_view(labels).substr(labels.empty() ? 0 : 1);
  while (const auto label = take_label(rest))
    if (std::find(names.begin(), names.end(), label->name) == names.end())
      kept.append(label->name).append("=").append(label->value).append(",");
  return kept;
}

}  // namespace specsim::logs
