// Columns that are described in one place: for the file itself, for the reference page, and for lookup by name.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/report/csv.h"

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace specsim::report {

// A column's name, unit ("1" for a plain number, "" for text), meaning or formula, and how a row prints it.
template <class Row>
struct Column {
  std::string name;
  std::string unit;
  std::string meaning;
  std::function<std::string(const Row&)> text;
};

// How a row prints one of its members: a text unchanged, an integer, a real number with this many significant digits.
template <class Row, class T>
auto field(T Row::*member) {
  return [member](const Row& row) {
    if constexpr (std::is_arithmetic_v<T>) {
      return std::to_string(row.*member);
    } else {
      return std::string(row.*member);
    }
  };
}
template <class Row>
auto field(double Row::*member, int digits) {
  return [member, digits](const Row& row) { return csv_real(row.*member, digits); };
}

// A CSV file with a header and one line per row.
template <class Row>
std::string csv(const std::vector<Column<Row>>& columns, const std::vector<Row>& rows) {
  std::vector<std::string> fields;
  for (const Column<Row>& column : columns) fields.push_back(column.name);
  Csv file(fields);
  for (const Row& row : rows) {
    fields.clear();
    for (const Column<Row>& column : columns) fields.push_back(column.text(row));
    file.add(fields);
  }
  return file.text();
}

// The column with this name; an unknown name is a failed check.
template <class Row>
const Column<Row>& column_named(const std::vector<Column<Row>>& columns, const std::string& name) {
  for (const Column<Row>& column : columns)
    if (column.name == name) return column;
  SPECSIM_CHECK(false, "no column {}", name);
}

// A column that shows `column` for one part of a row; `part` returns that part.
template <class Row, class Part>
Column<Row> column_through(const Column<Part>& column, const Part& (*part)(const Row&)) {
  return {column.name, column.unit, column.meaning, [text = column.text, part](const Row& row) { return text(part(row)); }};
}

// A column of a file with millions of lines, whose rows are not kept. It appends a row's field to a line without allocating a
// string. The field needs no quotes.
template <class Row>
struct StreamedColumn {
  std::string name;
  std::string unit;
  std::string meaning;
  std::function<void(std::string& line, const Row&)> append;
};

// The header of such a file, and one line per row.
template <class Row>
void append_header(std::string& text, const std::vector<StreamedColumn<Row>>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += ',';
    text += columns[i].name;
  }
  text += '\n';
}
template <class Row>
void append_line(std::string& text, const std::vector<StreamedColumn<Row>>& columns, const Row& row) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += ',';
    columns[i].append(text, row);
  }
  text += '\n';
}

// A column as the reference page shows it.
struct ColumnInfo {
  std::string name;
  std::string unit;
  std::string meaning;
};
struct FileInfo {
  std::string name;  // the file's name, and the command that writes it
  std::vector<ColumnInfo> columns;
  std::string note = {};  // a sentence on the columns that depend on the run; "" if there are none
};

template <class AnyColumn>
std::vector<ColumnInfo> column_infos(const std::vector<AnyColumn>& columns) {
  std::vector<ColumnInfo> infos;
  for (const AnyColumn& column : columns) infos.push_back({column.name, column.unit, column.meaning});
  return infos;
}

}  // namespace specsim::report
