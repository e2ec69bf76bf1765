// Finding numbers in lines of a log.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::logs {

// Above, not every whole number is a double; no server has counted so far.
constexpr double kLargestNumber = 9007199254740992.0;  // 2^53
// Positions of a draft; no server drafts so many tokens.
constexpr std::size_t kMostPositions = 512;

// Where the text behind `key` begins, nothing where the key does not stand in the line.
std::optional<std::string_view> behind(std::string_view line, std::string_view key);
// The number from 0 to kLargestNumber that follows `key`, spaces between them left out.
std::optional<double> number_behind(std::string_view line, std::string_view key);
// The same, where it is a whole number: counts are.
std::optional<double> count_behind(std::string_view line, std::string_view key);
// Whether `key` is followed by what a number that is not to be had is printed as, or by one that number_behind() refuses: NaN,
// infinite, negative, too large.
bool bad_number_behind(std::string_view line, std::string_view key);
// Shares of rounds with commas between that follow `key`, up to the first thing that is no number: empty where there are none.
// Nothing where one of them is no share, in [0, 1], or where there are more than kMostPositions.
std::optional<std::vector<double>> rates_behind(std::string_view line, std::string_view key);
std::string_view trimmed(std::string_view text);

// What a log may say of names before the rest is refused as a line that cannot be read: nothing grows with the text without end.
constexpr std::size_t kLongestName = 1024;    // bytes of a line's labels, or of a name
constexpr std::size_t kMostLabelSets = 4096;  // in one log
// Requests, and answers that come in pieces, of which lines may yet come. Those of more than so many at once are forgotten.
constexpr std::size_t kMostAtOnce = 65536;

// A line of Prometheus text.
struct MetricLine {
  std::string metric;      // without "_total"
  std::string labels;      // "{...}", or empty
  double value = 0.0;      // NaN: it is one that number_behind() refuses
  bool beginning = false;  // "_created": the time at which the counter `metric` began
  // The label's value as it is written, quotation marks and escapes included; nothing where it is not among the labels.
  [[nodiscard]] std::optional<std::string> label(std::string_view name) const;
  // The labels but for these.
  [[nodiscard]] std::string labels_without(std::initializer_list<std::string_view> names) const;
};
// Nothing where the line is a comment or holds no metric whose name begins with `prefix`.
std::optional<MetricLine> metric_line(std::string_view line, std::string_view prefix);

}  // namespace specsim::logs
