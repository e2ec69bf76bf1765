#include "sim/foundation/report/csv.h"

#include "sim/foundation/base/check.h"

#include <cmath>

namespace specsim::report {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_real(double x, int digits) {
  if (std::isnan(x)) return "";
  if (std::isinf(x)) return x > 0.0 ? "inf" : "-inf";
  return fmt::format("{:.{}g}", x, digits);
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_field(fields[i]);
  }
  return line;
}

std::optional<std::vector<std::string>> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ',') {
      fields.emplace_back();
      ++at;
      continue;
    }
    if (line[at] != '"') {
      const std::size_t end = std::min(line.find(',', at), line.size());
      fields.back() = line.substr(at, end - at);
      if (fields.back().find('"') != std::string::npos) return std::nullopt;
      at = end;
      continue;
    }
    for (++at;; ++at) {
      if (at >= line.size()) return std::nullopt;
      if (line[at] == '"' && (at + 1 >= line.size() || line[at + 1] != '"')) break;
      if (line[at] == '"') ++at;
      fields.back() += line[at];
    }
    ++at;
    if (at < line.size() && line[at] != ',') return std::nullopt;
  }
  return fields;
}

Csv::Csv(const std::vector<std::string>& header) : columns_(header.size()), text_(csv_line(header) + "\n") {}

void Csv::add(const std::vector<std::string>& fields) {
  SPECSIM_CHECK(fields.size() == columns_, "{} fields under {} heads", fields.size(), columns_);
  text_ += csv_line(fields) + "\n";
  ++lines_;
}

}  // namespace specsim::report
