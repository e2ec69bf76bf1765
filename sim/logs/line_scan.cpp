#include "sim/logs/line_scan.h"

#include "sim/base/standard_library.h"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace specsim::logs {

namespace {

// The number that the text begins with, which is cut off.
std::optional<double> take_number(std::string_view& text) {
  const std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return std::nullopt;
  double x = 0.0;
  const char* const begin = text.data() + from;
  const auto [end, error] = from_chars(begin, text.data() + text.size(), x);
  if (error != std::errc() || !std::isfinite(x) || x < 0.0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return x;
}

}  // namespace

std::optional<std::string_view> behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

std::optional<double> number_behind(std::string_view line, std::string_view key) {
  auto rest = behind(line, key);
  return rest ? take_number(*rest) : std::nullopt;
}

std::vector<double> numbers_behind(std::string_view line, std::string_view key) {
  std::vector<double> numbers;
  auto rest = behind(line, key);
  while (rest) {
    const auto x = take_number(*rest);
    if (!x) break;
    numbers.push_back(*x);
    const std::size_t next = rest->find_first_not_of(" \t");
    if (next == std::string_view::npos || (*rest)[next] != ',') break;
    rest->remove_prefix(next + 1);
  }
  return numbers;
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
  if (read.metric.ends_with("_created")) return std::nullopt;  // a time
  if (read.metric.ends_with("_total")) read.metric.resize(read.metric.size() - 6);
  line.remove_prefix(end);
  if (line.front() == '{') {
    const std::size_t close = line.rfind('}');
    if (close == std::string_view::npos) return std::nullopt;
    read.labels = line.substr(0, close + 1);
    line.remove_prefix(close + 1);
  }
  const auto value = number_behind(line, "");
  if (!value) return std::nullopt;
  read.value = *value;
  return read;
}

}  // namespace specsim::logs
