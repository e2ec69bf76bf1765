// CSV as in RFC 4180: fields separated by commas, quoted if necessary, with a header in the first line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

// A field, in quotes if it contains a comma, a quote or a line end.
std::string csv_field(std::string_view text);
// A number with this many significant digits; empty for NaN.
std::string csv_real(double x, int digits = 10);
// Fields with commas between, without a line end.
std::string csv_line(const std::vector<std::string>& fields);
// The fields of a line, without quotes; nullopt for misplaced quotes. Fields that contain a line end are not supported.
std::optional<std::vector<std::string>> csv_fields(std::string_view line);

// A file that is made line by line. Every line must have as many fields as the header; otherwise a check fails.
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
