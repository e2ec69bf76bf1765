// The output of a command, kept as text and tables until the command ends, and then written in another format than the
// terminal's.
//
// While a document is open, Table::text() returns a mark instead of a table. Printed text goes to the document, which finds the
// tables by their marks. So no command knows the format of its output.
#pragma once

#include "sim/foundation/report/table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace specsim::report {

enum class Format { table, csv, json, markdown };
// The formats' names, and the format of a name; nullopt for any other name.
std::vector<std::string> format_names();
std::optional<Format> format_named(std::string_view name);

// The JSON's "schema": increased whenever a reader of the old format would have to change. docs/output.md describes its fields.
inline constexpr const char* kOutputSchema = "specsim-output/2";

// The JSON fields around the figures.
struct JsonHeader {
  std::string version;
  std::string commit;
  std::vector<std::string> command;  // the words that were typed, without the program's name
  int exit_status = 0;
};

// Only one document may be open at a time in a context (sim/foundation/base/context.h).
class Document {
 public:
  Document();
  ~Document();
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  // The contents in the given format; `quiet`: tables alone. Throws nothing.
  [[nodiscard]] std::string written(Format format, const JsonHeader& header, bool quiet) const;

  // Keeps a table and returns the mark that represents it in printed text.
  std::string keep(std::vector<Head> heads, std::vector<std::vector<std::string>> rows, bool headless);
  void print(std::string_view text);

 private:
  struct StoredTable {
    std::string title;  // the line of text before it
    std::vector<Head> heads;
    std::vector<std::vector<std::string>> rows;
    bool headless = false;
  };
  using Part = std::variant<std::string, std::size_t>;  // lines of text, or a table by its number
  [[nodiscard]] std::vector<Part> parts() const;
  [[nodiscard]] std::string csv() const;
  [[nodiscard]] std::string json(const JsonHeader& header, bool quiet) const;
  [[nodiscard]] std::string markdown(bool quiet) const;

  std::string text_;
  std::vector<StoredTable> tables_;
};

}  // namespace specsim::report
