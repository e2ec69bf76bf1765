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

Document* open_document = nullptr;

// A table's mark in what is printed. A stray one of a user's names stands for a number that no table has, and is left out.
constexpr char kMark = '\x1e';

// A cell as a number where it is nothing else, null where it is empty or a dash.
nlohmann::ordered_json value_of_cell(const std::string& cell) {
  if (cell.empty() || cell == "-") return nullptr;
  double x = 0.0;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = from_chars(cell.data(), end, x);
  if (error != std::errc() || stop != end || !std::isfinite(x)) return cell;
  if (cell.find_first_not_of("-0123456789") == std::string::npos && std::abs(x) < 9e15) return static_cast<long long>(x);
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
  open_document = this;
  divert_output([](std::string_view text) { open_document->print(text); });
  divert_tables([](const std::vector<Head>& heads, const std::vector<std::vector<std::string>>& rows, bool headless) {
    return open_document->keep(heads, rows, headless);
  });
}

Document::~Document() {
  divert_tables({});
  divert_output({});
  open_document = nullptr;
}

std::string Document::keep(std::vector<Head> heads, std::vector<std::vector<std::string>> rows, bool headless) {
  if (headless && rows.empty()) return "";  // nothing is shown of it
  tables_.push_back({"", std::move(heads), std::move(rows), headless});
  return fmt::format("{}{}\n", kMark, tables_.size() - 1);
}

void Document::print(std::string_view text) {
  // What is no mark is made printable, as it would be for a terminal.
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

std::string Document::written(Format format, const Told& told, bool quiet) const {
  switch (format) {
    case Format::csv:
      return csv();
    case Format::json:
      return json(told, quiet);
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
    const Kept& table = tables_[*number];
    if (!text.empty()) text += '\n';
    std::vector<std::string> fields;
    for (const Head& head : table.heads) fields.push_back(head.name);
    if (!table.headless) text += csv_line(fields) + "\n";
    for (const auto& row : table.rows) {
      fields.clear();
      for (const std::string& cell : row) fields.push_back(cell == "-" ? "" : cell);
      text += csv_line(fields) + "\n";
    }
  }
  return text;
}

std::string Document::json(const Told& told, bool quiet) const {
  nlohmann::ordered_json all;
  all["schema"] = kOutputSchema;
  all["program"] = "specsim";
  all["version"] = told.version;
  all["commit"] = told.commit;
  all["command"] = told.command;
  all["exit_status"] = told.exit_status;
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
    const Kept& table = tables_[std::get<std::size_t>(part)];
    nlohmann::ordered_json one;
    one["title"] = title;
    one["columns"] = nlohmann::ordered_json::array();
    for (const Head& head : table.heads) one["columns"].push_back(head.name);
    one["rows"] = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) {
      nlohmann::ordered_json values = nlohmann::ordered_json::array();
      for (const std::string& cell : row) values.push_back(value_of_cell(cell));
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
    const Kept& table = tables_[std::get<std::size_t>(part)];
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
