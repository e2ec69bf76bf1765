// CSV as RFC 4180 has it: fields with commas between, quoted where they must be, a header in the first line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

// A field, in quotes where it holds a comma, a quote or a line end.
std::string csv_field(std::string_view text);
// A number with so many significant digits; empty for NaN.
std::string csv_real(double x, int digits = 10);
// Fields with commas between, without a line end.
std::string csv_line(const std::vector<std::string>& fields);
// The fields of a line, quotes taken off; nullopt for quotes that are out of place. A field that holds a line end is beyond it.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

// A file that is made line by line. Every line has as many fields as the header; another number is a failed check.
class Csv {
 public:
  explicit Csv(const std::vector<std::string>& header);
  void add(const std::vector<std::string>& fields);
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t lines() const { return lines_; }  // without the header

 private:
  std::size_t columns_;
  std::size_t lines_ = 0;
  std::string text_;
};

}  // namespace specsim::report
