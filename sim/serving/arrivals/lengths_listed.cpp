// Lengths that the user lists, or one for all requests, or recorded ones without their times: a column of a CSV file.
#include "sim/foundation/base/text_file.h"
#include "sim/serving/arrivals/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::arrivals {

namespace {

class ListedLength final : public LengthDistribution {
 public:
  explicit ListedLength(std::vector<std::uint32_t> tokens) : tokens_(std::move(tokens)) {}
  std::uint32_t draw(std::uint64_t request, rng::Stream& /*random_bits*/) const override {
    return tokens_[request % tokens_.size()];
  }

 private:
  std::vector<std::uint32_t> tokens_;
};

// Field number `column` of a line and where it begins; nothing if the line has fewer fields.
std::optional<std::pair<std::string_view, std::size_t>> field_of(std::string_view line, std::size_t column) {
  std::size_t begin = 0;
  for (; column > 0; --column) {
    const std::size_t comma = line.find(',', begin);
    if (comma == std::string_view::npos) return std::nullopt;
    begin = comma + 1;
  }
  return std::pair{line.substr(begin, line.find(',', begin) - begin), begin};
}

std::optional<std::size_t> column_of(std::string_view header, std::string_view name) {
  for (std::size_t column = 0, begin = 0;; ++column) {
    const std::size_t end = std::min(header.find(',', begin), header.size());
    if (header.substr(begin, end - begin) == name) return column;
    if (end == header.size()) return std::nullopt;
    begin = end + 1;
  }
}

// The column's whole numbers from 1; empty after reporting.
std::vector<std::uint32_t> read_column(const std::string& text, const std::string& path, const std::string& name,
                                       Diagnostics& diagnostics) {
  std::vector<std::uint32_t> tokens;
  std::optional<std::size_t> column;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    if (!column) {
      column = column_of(line, name);
      if (column) continue;
      diagnostics.add({path, number, 1}, fmt::format("has no column {}, allowed: those of {}", config::quote_for_message(name),
                                                     config::quote_for_message(line)));
      return {};
    }
    const auto field = field_of(line, *column);
    std::int64_t value = 0;
    const std::string_view found = field ? field->first : std::string_view();
    const auto [stop, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (!field || error != std::errc() || stop != found.data() + found.size() || value < 1 ||
        value > static_cast<std::int64_t>(kMostTokens)) {
      diagnostics.add(
          {path, number, field ? static_cast<int>(field->second) + 1 : static_cast<int>(line.size()) + 1},
          fmt::format("{} is {}, allowed: a whole number from 1 to {:g}", name, config::quote_for_message(found), kMostTokens));
      return {};
    }
    tokens.push_back(static_cast<std::uint32_t>(value));
  }
  if (tokens.empty()) diagnostics.add({path, 0, 0}, "has no line of lengths, allowed: at least one");
  return tokens;
}

}  // namespace

LengthsEntry fixed_lengths() {
  return {
      {"fixed", "one number for every request: {fixed: 128}, or the number alone", "", {}, ""},
      [](const config::Value& value, const config::PartInfo&, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
        const auto tokens = config::read_integer(value, config::between(1, kMostTokens), "fixed", diagnostics);
        if (!tokens) return nullptr;
        return std::make_unique<ListedLength>(std::vector{static_cast<std::uint32_t>(*tokens)});
      }};
}

LengthsEntry list_lengths() {
  return {
      {"list", "one after the other; after the last it starts again: {list: [128, 256]}", "", {}, ""},
      [](const config::Value& value, const config::PartInfo&, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
        std::vector<std::uint32_t> tokens;
        if (!value.is_list() || value.items.empty()) {
          diagnostics.add(value.where, "list is " + config::description_of_found(value) + ", allowed: [128, 256, ...]");
          return nullptr;
        }
        for (const config::Value& item : value.items) {
          const auto length = config::read_integer(item, config::between(1, kMostTokens), "list", diagnostics);
          if (!length) return nullptr;
          tokens.push_back(static_cast<std::uint32_t>(*length));
        }
        return std::make_unique<ListedLength>(std::move(tokens));
      }};
}

LengthsEntry file_lengths() {
  struct P {
    std::string path;
    std::string column;
  };
  static const config::Fields<P> fields = {
      {"path", &P::path, "the file, whose first line names the columns", config::required},
      {"column", &P::column, "the column's name", config::required},
  };
  return {{"file",
           "a column of a CSV file, one line for each request; after the last line it starts again: {file: {path: requests.csv, "
           "column: prompt}}",
           "", fields, "Prompts and outputs of the same file stay together, line by line."},
          from_arguments("lengths of a file",
                         [](const config::Arguments& arguments, Diagnostics& diagnostics) -> std::unique_ptr<LengthDistribution> {
                           const P params = fields.read(arguments);
                           const Location& where = arguments.where("path");
                           const std::string path = file_next_to(where, params.path);
                           std::string text;
                           try {
                             text = read_text_file(path);
                           } catch (const ReadError& error) {
                             diagnostics.add(
                                 where, fmt::format("{}: {}{}", path, error.message("file of lengths"), looked_for(where, path)));
                             return nullptr;
                           }
                           std::vector<std::uint32_t> tokens = read_column(text, path, params.column, diagnostics);
                           return tokens.empty() ? nullptr : std::make_unique<ListedLength>(std::move(tokens));
                         })};
}

}  // namespace specsim::arrivals
