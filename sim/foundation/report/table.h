// Tables for the terminal: aligned columns, two spaces between them, never wider than the terminal's line.
#pragma once

#include "sim/foundation/base/output.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::report {

enum class Align { right, left };

struct Head {
  std::string name;
  Align align = Align::right;
  std::string plain = {};  // its name in other formats than the terminal's; "": `name`
};

// Heads separated by commas; `<` marks a column that is aligned left: "<GPU,<engine,count".
std::vector<Head> heads(std::string_view list);
struct TableLayout {
  std::size_t indent = 0;  // spaces before every line
  std::size_t keys = 1;    // leading columns that identify a row: repeated in each block if a table is cut
  bool headless = false;   // no line of heads
};

class Table {
 public:
  explicit Table(std::vector<Head> heads, TableLayout layout = {});
  // Adds a row. Missing cells at its end are empty; more cells than heads are a failed check.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // The table in lines of at most `width` characters. A wider table wraps: a last column of words (aligned left) within its own
  // column if there is room, everything else by cutting the table between columns into blocks, one below the other. A single
  // column that is wider than that is not cut.
  [[nodiscard]] std::string text(std::size_t width = kUnlimitedWidth) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string block(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths) const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& columns,
                                 const std::vector<std::size_t>& widths) const;

  std::vector<Head> heads_;
  TableLayout layout_;
  std::vector<std::vector<std::string>> rows_;
};

// Receives tables instead of the terminal: Table::text() returns its result.
using TableTaker =
    std::function<std::string(const std::vector<Head>& heads, const std::vector<std::vector<std::string>>& rows, bool headless)>;
// From here on tables of this context (sim/foundation/base/context.h) go to `taker`; an empty one restores the terminal.
void divert_tables(TableTaker taker);

// Width of a text on a terminal, one character per code point.
std::size_t display_width(const std::string& text);
// A text cut at spaces into lines of at most `width` characters; longer words stay whole.
std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

// A figure of a table; "-" for NaN. `format` as in "{:.4f}".
std::string cell_text(double x, const char* format);

}  // namespace specsim::report
