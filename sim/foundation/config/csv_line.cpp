#include "sim/foundation/config/csv_line.h"

#include "sim/foundation/config/value.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::config {

CsvLine::CsvLine(const std::string& file, const std::vector<std::string>& header, const std::vector<std::string>& fields,
                 std::size_t number)
    : file_(file), header_(header), fields_(fields), number_(static_cast<int>(number)) {
  if (fields.size() != header.size())
    throw BadInput({file_, number_, 0}, fmt::format("{} fields, allowed: {} as in the header", fields.size(), header.size()));
}

std::size_t CsvLine::index(std::string_view name) const {
  return static_cast<std::size_t>(std::find(header_.begin(), header_.end(), name) - header_.begin());
}

const std::string& CsvLine::text(std::string_view name) const {
  static const std::string none;
  const std::size_t at = index(name);
  return at < header_.size() ? fields_[at] : none;
}

Location CsvLine::where(std::string_view name) const {
  std::size_t place = 1;
  for (std::size_t i = 0, end = index(name); i < end; ++i) place += fields_[i].size() + 1;
  return {file_, number_, static_cast<int>(place)};
}

void CsvLine::refuse(std::string_view name, const std::string& allowed) const {
  throw BadInput(where(name), fmt::format("{} is {}, allowed: {}", name, quote_for_message(text(name)), allowed));
}

}  // namespace specsim::config
