// CSV files whose columns are told in one place: for the file itself and for `specsim reference`.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace specsim::cli {

// A column's name, unit, meaning, and how a row prints it.
template <class Row>
struct Column {
  std::string name;
  std::string unit;
  std::string meaning;
  std::function<std::string(const Row&)> text;
};

template <class Row>
std::string csv_header(const std::vector<Column<Row>>& columns) {
  std::string line;
  for (const Column<Row>& column : columns) line += (line.empty() ? "" : ",") + column.name;
  return line;
}

template <class Row>
std::string csv_line(const std::vector<Column<Row>>& columns, const Row& row) {
  std::string line;
  for (const Column<Row>& column : columns) line += (&column == columns.data() ? "" : ",") + column.text(row);
  return line;
}

// A file's columns, for the reference.
struct CsvFile {
  struct About {
    std::string name;
    std::string unit;
    std::string meaning;
  };
  std::string name;  // with what writes it
  std::vector<About> columns;
};

template <class Row>
CsvFile csv_file(const std::string& name, const std::vector<Column<Row>>& columns) {
  CsvFile file{name, {}};
  for (const Column<Row>& column : columns) file.columns.push_back({column.name, column.unit, column.meaning});
  return file;
}

// Those of the commands on real models.
std::vector<CsvFile> calibrate_files();
CsvFile validate_file();
CsvFile gpu_validation_file();

// A number of so many significant digits; empty for what is none.
inline std::string csv_number(double x, int digits = 6) { return std::isnan(x) ? "" : fmt::format("{:.{}g}", x, digits); }

}  // namespace specsim::cli
