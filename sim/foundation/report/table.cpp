#include "sim/foundation/report/table.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/context.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

namespace specsim::report {

namespace {

struct TableRedirect {
  TableTaker taker;
};
TableTaker& table_taker() { return context().of<TableRedirect>().taker; }

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastWords = 24;  // a column of words narrower than this is hard to read: the table is cut instead

std::string aligned(const std::string& text, std::size_t width, Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Align::right ? space + text : text + space;
}

}  // namespace

std::vector<Head> heads(std::string_view list) {
  std::vector<Head> heads;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, end - at);
    const bool left = name.starts_with('<');
    heads.push_back({std::string(name.substr(left ? 1 : 0)), left ? Align::left : Align::right});
    at = end + 1;
  }
  return heads;
}

void divert_tables(TableTaker taker) { table_taker() = std::move(taker); }

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::string> wrap_words(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string cell_text(double x, const char* format) {
  return std::isnan(x) ? std::string("-") : fmt::format(fmt::runtime(format), x);
}

Table::Table(std::vector<Head> heads, TableLayout layout) : heads_(std::move(heads)), layout_(layout) {}

void Table::add(std::vector<std::string> cells) {
  SPECSIM_CHECK(cells.size() <= heads_.size(), "{} cells under {} heads", cells.size(), heads_.size());
  cells.resize(heads_.size());
  for (std::string& cell : cells) cell = printable(cell);  // escaped text is wider
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    std::size_t width = layout_.headless ? 0 : display_width(heads_[i].name);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
  }
  return widths;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& columns,
                        const std::vector<std::size_t>& widths) const {
  std::string start(layout_.indent, ' ');
  for (const std::size_t i : columns) {
    if (i == columns.back()) {  // words may continue on the next line
      const std::size_t at = display_width(start);
      std::string text;
      const bool fits = display_width(cells[i]) <= widths[i];
      for (const std::string& part : fits ? std::vector{cells[i]} : wrap_words(cells[i], widths[i])) {
        std::string whole = (text.empty() ? start : std::string(at, ' ')) + aligned(part, widths[i], heads_[i].align);
        whole.erase(whole.find_last_not_of(' ') + 1);
        text += whole + "\n";
      }
      return text;
    }
    start += aligned(cells[i], widths[i], heads_[i].align) + std::string(kGap, ' ');
  }
  return start + "\n";
}

std::string Table::block(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths) const {
  std::string text;
  if (!layout_.headless) {
    std::vector<std::string> names;
    for (const Head& head : heads_) names.push_back(head.name);
    text += line(names, columns, widths);
  }
  for (const auto& row : rows_) text += line(row, columns, widths);
  return text;
}

std::string Table::text(std::size_t width) const {
  if (table_taker()) return table_taker()(heads_, rows_, layout_.headless);
  std::vector<std::size_t> widths = this->widths();
  std::vector<std::size_t> all(heads_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto taken = [&](const std::vector<std::size_t>& columns) {
    std::size_t sum = layout_.indent;
    for (const std::size_t i : columns) sum += widths[i] + (i == columns.front() ? 0 : kGap);
    return sum;
  };
  if (heads_.empty() || taken(all) <= width) return block(all, widths);
  const std::size_t others = taken(all) - widths.back();
  if (heads_.back().align == Align::left && others + kLeastWords <= width) {
    widths.back() = width - others;
    return block(all, widths);
  }
  const std::vector<std::size_t> keys(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(layout_.keys, all.size())));
  std::string text;
  for (std::size_t next = keys.size(); next < all.size();) {
    std::vector<std::size_t> columns = keys;
    columns.push_back(next++);
    for (; next < all.size(); ++next) {
      columns.push_back(next);
      if (taken(columns) <= width) continue;
      columns.pop_back();
      break;
    }
    text += (text.empty() ? "" : "\n") + block(columns, widths);
  }
  return text.empty() ? block(all, widths) : text;
}

}  // namespace specsim::report
