// Tables for the terminal: columns aligned, two spaces between, never wider than the line that they are shown on.
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
};

// Heads with commas between; `<` in front of one whose column is aligned left: "<GPU,<engine,count".
std::vector<Head> heads(std::string_view list);
struct TableLayout {
  std::size_t indent = 0;  // spaces in front of every line
  std::size_t keys = 1;    // leading columns that tell a row from the others: repeated where a table is cut into blocks
  bool headless = false;   // no line of heads
};

class Table {
 public:
  explicit Table(std::vector<Head> heads, TableLayout layout = {});
  // A row; cells that are left out at its end are empty, more cells than heads are a failed check.
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

// Takes tables in the terminal's place: what it returns is what Table::text() gives.
using TableTaker =
    std::function<std::string(const std::vector<Head>& heads, const std::vector<std::vector<std::string>>& rows, bool headless)>;
// Tables of this context (sim/foundation/base/context.h) go to `taker` from here on; an empty one gives them back to the
// terminal.
void divert_tables(TableTaker taker);

// Characters that a text takes on a terminal, each code point one.
std::size_t display_width(const std::string& text);
// A text cut at spaces into lines of at most `width` characters; longer words stay whole.
std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

// A figure of a table; "-" for NaN. `format` as in "{:.4f}".
std::string cell_text(double x, const char* format);

}  // namespace specsim::report
