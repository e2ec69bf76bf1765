// A line of a CSV table: its fields by the names of the header, and messages about them.
#pragma once

#include "sim/foundation/base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::config {

class CsvLine {
 public:
  // `file`, `header` and `fields` are kept by the caller. Throws BadInput if the line has another number of fields than the
  // header.
  CsvLine(const std::string& file, const std::vector<std::string>& header, const std::vector<std::string>& fields,
          std::size_t number);
  [[nodiscard]] bool has(std::string_view name) const { return index(name) < header_.size(); }
  // "" for a column that the table does not have.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  // The place of a field, valid if the line has no quotes.
  [[nodiscard]] Location where(std::string_view name) const;
  // Throws BadInput: NAME is "FOUND", allowed: ALLOWED.
  [[noreturn]] void refuse(std::string_view name, const std::string& allowed) const;

 private:
  [[nodiscard]] std::size_t index(std::string_view name) const;

  const std::string& file_;
  const std::vector<std::string>& header_;
  const std::vector<std::string>& fields_;
  int number_;
};

}  // namespace specsim::config
