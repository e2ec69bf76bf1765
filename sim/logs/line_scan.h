// Finding numbers in lines of a log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::logs {

// Where the text behind `key` begins, nothing where the key does not stand in the line.
std::optional<std::string_view> behind(std::string_view line, std::string_view key);
// The finite number, 0 or above, that follows `key`, spaces between them left out.
std::optional<double> number_behind(std::string_view line, std::string_view key);
// Numbers with commas between that follow `key`, up to the first thing that is none.
std::vector<double> numbers_behind(std::string_view line, std::string_view key);
std::string_view trimmed(std::string_view text);

// A line of Prometheus text.
struct MetricLine {
  std::string metric;  // without "_total"
  std::string labels;  // "{...}", or empty
  double value = 0.0;
};
// Nothing where the line is a comment or holds no metric whose name begins with `prefix`.
std::optional<MetricLine> metric_line(std::string_view line, std::string_view prefix);

}  // namespace specsim::logs
