#include "sim/foundation/report/document.h"

#include "sim/foundation/base/output.h"
#include "sim/foundation/base/output_taker.h"
#include "sim/foundation/base/standard_library.h"
#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace specsim::report {

namespace {

constexpr std::array<std::pair<std::string_view, Format>, 4> kNamedFormats = {
    {{"table", Format::table}, {"csv", Format::csv}, {"json", Format::json}, {"markdown", Format::markdown}}};

// A table's mark in printed text. If a user's name contains this character, no table has its number, and it is dropped.
constexpr char kMark = '\x1e';

bool is_empty(const std::string& cell) { return cell.empty() || cell == "-"; }

constexpr std::string_view kPlusMinus = " ± ";

// Removes "%" from a cell's end, and the space before it; returns whether it was there.
bool take_percent(std::string& cell) {
  if (!cell.ends_with('%')) return false;
  cell.pop_back();
  if (cell.ends_with(' ')) cell.pop_back();
  return true;
}

bool is_number(const std::string& cell) {
  double x = 0.0;
  const char* const begin = cell.data() + (cell.starts_with('+') ? 1 : 0);
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = from_chars(begin, end, x);
  return error == std::errc() && stop == end;
}

// A table for programs: column names are unique, and a figure with its interval or its unit is a number in its own column.
struct PlainTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> columns;  // [column][row]; empty: unknown
};

// Adds a column. It becomes two if its cells are figures with half the widths of their intervals ("1.25 ± 0.03", "0.4 % ± 0.1"),
// or figures with their relative errors ("2.75 +1.2 %").
void add_column(const std::string& name, std::vector<std::string> cells, PlainTable& plain) {
  std::vector<std::string> widths(cells.size());
  bool any_width = false;
  bool any_off = false;
  bool percent = true;
  bool numbers = true;
  bool any = false;
  std::vector<std::string> figures = cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_empty(cells[i])) {
      figures[i].clear();
      continue;
    }
    any = true;
    if (const std::size_t at = cells[i].find(kPlusMinus); at != std::string::npos) {
      figures[i] = cells[i].substr(0, at);
      widths[i] = cells[i].substr(at + kPlusMinus.size());
      any_width = true;
    } else if (const std::size_t sign = cells[i].find_first_of("+-", 1);
               cells[i].ends_with('%') && sign != std::string::npos && cells[i][sign - 1] == ' ') {
      figures[i] = cells[i].substr(0, sign - 1);
      widths[i] = cells[i].substr(sign);
      any_off = true;
    }
    percent = take_percent(figures[i]) && percent;
    take_percent(widths[i]);
    numbers = numbers && is_number(figures[i]) && (widths[i].empty() || is_number(widths[i]));
  }
  percent = percent && any;
  if (!numbers || (any_width && any_off) || !(percent || any_width || any_off)) {
    for (std::string& cell : cells)
      if (cell == "-") cell.clear();
    plain.names.push_back(name);
    plain.columns.push_back(std::move(cells));
    return;
  }
  plain.names.push_back(percent ? name + " %" : name);
  plain.columns.push_back(std::move(figures));
  if (!any_width && !any_off) return;
  plain.names.push_back(plain.names.back() + (any_width ? " ±" : " off by %"));
  plain.columns.push_back(std::move(widths));
}

PlainTable plain_table(const std::vector<Head>& heads, const std::vector<std::vector<std::string>>& rows) {
  PlainTable plain;
  std::string base;
  for (std::size_t c = 0; c < heads.size(); ++c) {
    // A repeated name such as "+-95%" belongs to the last column before it whose name is not repeated.
    const bool named = !heads[c].plain.empty();
    const std::string& own = named ? heads[c].plain : heads[c].name;
    const bool again =
        !named && c > 0 && std::count_if(heads.begin(), heads.end(), [&](const Head& head) { return head.name == own; }) > 1;
    if (!again) base = own;
    std::vector<std::string> cells;
    for (const auto& row : rows) cells.push_back(c < row.size() ? row[c] : "");
    add_column(own.empty() ? fmt::format("column {}", c + 1)
               : again     ? fmt::format("{} {}", base, own)
                           : own,
               std::move(cells), plain);
  }
  return plain;
}

// A cell as a number if it is nothing else, null if it is empty.
nlohmann::ordered_json value_of_cell(const std::string& cell) {
  if (cell.empty()) return nullptr;
  double x = 0.0;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = from_chars(cell.data() + (cell.starts_with('+') ? 1 : 0), end, x);
  if (error != std::errc() || stop != end || !std::isfinite(x)) return cell;
  if (cell.find_first_not_of("+-0123456789") == std::string::npos && std::abs(x) < 9e15) return static_cast<long long>(x);
  return x;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) lines.push_back(std::move(line));
    from = end + 1;
  }
  return lines;
}

std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

}  // namespace

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : kNamedFormats) names.emplace_back(name);
  return names;
}

std::optional<Format> format_named(std::string_view name) {
  for (const auto& [known, format] : kNamedFormats)
    if (name == known) return format;
  return std::nullopt;
}

Document::Document() {
  divert_output([this](std::string_view text) { print(text); });
  divert_tables([this](const std::vector<Head>& heads, const std::vector<std::vector<std::string>>& rows, bool headless) {
    return keep(heads, rows, headless);
  });
}

Document::~Document() {
  divert_tables({});
  divert_output({});
}

std::string Document::keep(std::vector<Head> heads, std::vector<std::vector<std::string>> rows, bool headless) {
  if (headless && rows.empty()) return "";  // an empty table without heads is not shown
  tables_.push_back({"", std::move(heads), std::move(rows), headless});
  return fmt::format("{}{}\n", kMark, tables_.size() - 1);
}

void Document::print(std::string_view text) {
  // Text other than marks is made printable, as for a terminal.
  while (!text.empty()) {
    const std::size_t mark = text.find(kMark);
    text_ += printable(text.substr(0, mark));
    if (mark == std::string_view::npos) return;
    text_ += kMark;
    text.remove_prefix(mark + 1);
  }
}

std::vector<Document::Part> Document::parts() const {
  std::vector<Part> parts;
  std::string before;
  std::size_t from = 0;
  while (from < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', from), text_.size());
    const std::string line = text_.substr(from, end - from);
    const std::size_t mark = line.find(kMark);
    before += line.substr(0, mark);
    if (mark != std::string::npos) {
      if (!before.empty()) parts.emplace_back(std::move(before));
      before.clear();
      std::size_t number = 0;
      std::from_chars(line.data() + mark + 1, line.data() + line.size(), number);
      if (number < tables_.size()) parts.emplace_back(number);
    } else {
      before += '\n';
    }
    from = end + 1;
  }
  if (!before.empty()) parts.emplace_back(std::move(before));
  return parts;
}

std::string Document::written(Format format, const JsonHeader& header, bool quiet) const {
  switch (format) {
    case Format::csv:
      return csv();
    case Format::json:
      return json(header, quiet);
    case Format::markdown:
      return markdown(quiet);
    case Format::table:
      break;
  }
  return "";
}

std::string Document::csv() const {
  std::string text;
  for (const Part& part : parts()) {
    const auto* const number = std::get_if<std::size_t>(&part);
    if (number == nullptr) continue;
    const StoredTable& table = tables_[*number];
    const PlainTable plain = plain_table(table.heads, table.rows);
    if (!text.empty()) text += '\n';
    if (!table.headless) text += csv_line(plain.names) + "\n";
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      std::vector<std::string> fields;
      for (const auto& column : plain.columns) fields.push_back(column[row]);
      text += csv_line(fields) + "\n";
    }
  }
  return text;
}

std::string Document::json(const JsonHeader& header, bool quiet) const {
  nlohmann::ordered_json all;
  all["schema"] = kOutputSchema;
  all["program"] = "specsim";
  all["version"] = header.version;
  all["commit"] = header.commit;
  all["command"] = header.command;
  all["exit_status"] = header.exit_status;
  all["tables"] = nlohmann::ordered_json::array();
  all["text"] = nlohmann::ordered_json::array();
  std::string title;
  for (const Part& part : parts()) {
    if (const auto* const text = std::get_if<std::string>(&part)) {
      const std::vector<std::string> lines = lines_of(*text);
      for (const std::string& line : lines)
        if (!quiet) all["text"].push_back(line);
      if (!lines.empty()) title = lines.back();
      continue;
    }
    const StoredTable& table = tables_[std::get<std::size_t>(part)];
    nlohmann::ordered_json one;
    one["title"] = title;
    const PlainTable plain = plain_table(table.heads, table.rows);
    one["columns"] = plain.names;
    one["rows"] = nlohmann::ordered_json::array();
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      nlohmann::ordered_json values = nlohmann::ordered_json::array();
      for (const auto& column : plain.columns) values.push_back(value_of_cell(column[row]));
      one["rows"].push_back(std::move(values));
    }
    all["tables"].push_back(std::move(one));
    title.clear();
  }
  return printable_json(all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) + "\n";
}

std::string Document::markdown(bool quiet) const {
  std::string text;
  for (const Part& part : parts()) {
    if (const auto* const words = std::get_if<std::string>(&part)) {
      if (quiet) continue;
      const std::vector<std::string> lines = lines_of(*words);
      for (std::size_t i = 0; i < lines.size(); ++i) text += lines[i] + (i + 1 < lines.size() ? "  \n" : "\n\n");
      continue;
    }
    const StoredTable& table = tables_[std::get<std::size_t>(part)];
    std::string rule = "|";
    text += "|";
    for (const Head& head : table.heads) {
      text += " " + markdown_cell(head.name) + " |";
      rule += head.align == Align::right ? "---:|" : "---|";
    }
    text += "\n" + rule + "\n";
    for (const auto& row : table.rows) {
      text += "|";
      for (const std::string& cell : row) text += " " + markdown_cell(cell) + " |";
      text += "\n";
    }
    text += "\n";
  }
  if (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace specsim::report
