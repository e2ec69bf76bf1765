// Finds numbers in lines of a log.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::logs {

// Above 2^53 not every whole number is a double; no server's counters get there.
constexpr double kLargestNumber = 9007199254740992.0;  // 2^53
// Most positions of a draft; no server drafts as many tokens.
constexpr std::size_t kMostPositions = 512;

// The text after `key`; nothing if the key is not in the line.
std::optional<std::string_view> text_after(std::string_view line, std::string_view key);
// The number from 0 to kLargestNumber that follows `key`, after optional spaces.
std::optional<double> number_after(std::string_view line, std::string_view key);
// The same for a whole number, as counts are.
std::optional<double> count_after(std::string_view line, std::string_view key);
// The comma-separated shares of rounds that follow `key`, up to the first text that is not a number; empty if there are none.
// Nothing if one of them is outside [0, 1], or if there are more than kMostPositions.
std::optional<std::vector<double>> rates_after(std::string_view line, std::string_view key);
std::string_view trimmed(std::string_view text);

// Limits on the names in a log; a line beyond them is refused as unreadable, so that memory does not grow without end.
constexpr std::size_t kLongestName = 1024;    // bytes of a line's labels, or of a name
constexpr std::size_t kMostLabelSets = 4096;  // in one log
// Most requests, and answers in pieces, that are open at once. If there are more, they are forgotten.
constexpr std::size_t kMostAtOnce = 65536;

// A line of Prometheus text.
struct MetricLine {
  std::string metric;      // without "_total"
  std::string labels;      // "{...}", or empty
  double value = 0.0;      // NaN: a number that number_after() refuses
  double time = 0.0;       // of the value, in seconds since 1970; NaN: not in the text
  bool beginning = false;  // "_created": the time at which the counter `metric` began
  // The label's value as written, including quotation marks and escapes; nothing if the label does not exist.
  [[nodiscard]] std::optional<std::string> label(std::string_view name) const;
  // All labels except these.
  [[nodiscard]] std::string labels_without(std::initializer_list<std::string_view> names) const;
};
// Nothing if the line is a comment or has no metric whose name begins with `prefix`.
std::optional<MetricLine> metric_line(std::string_view line, std::string_view prefix);

}  // namespace specsim::logs
