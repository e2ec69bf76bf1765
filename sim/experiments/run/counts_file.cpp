#include "sim/experiments/run/counts_file.h"

#include "sim/foundation/base/error.h"
#include "sim/foundation/report/csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <set>
#include <sstream>
#include <tuple>

namespace specsim::run {

namespace {

const std::vector<std::string> kFields = {"experiment", "cell", "name", "index", "value"};

std::uint64_t count_of(const Location& where, const std::string& digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    throw BadInput(where, fmt::format("\"{}\" is no count, allowed: an integer of at least 0", digits.substr(0, 80)));
  return value;
}

}  // namespace

std::string counts_csv(const std::vector<CellCounts>& cells) {
  report::Csv file(kFields);
  for (const CellCounts& cell : cells)
    cell.counts->each([&](const char* name, std::size_t index, std::uint64_t value) {
      if (value != 0) file.add({cell.experiment, std::to_string(cell.index), name, std::to_string(index), std::to_string(value)});
    });
  return file.text();
}

void add_counts_csv(const std::string& path, const std::string& text,
                    const std::map<std::pair<std::string, std::size_t>, decode::Counts*>& counts) {
  const std::string header = report::csv_line(kFields);
  std::map<decode::Counts*, std::map<std::string, std::uint64_t*>> slots_of;
  std::set<std::string> seen;
  std::istringstream lines(text);
  std::string line;
  Location where{path, 0, 0};
  while (std::getline(lines, line)) {
    if (++where.line == 1) {
      if (line != header) throw BadInput(where, fmt::format("the header is \"{}\", allowed: {}", line.substr(0, 80), header));
      continue;
    }
    if (!seen.insert(line.substr(0, line.rfind(','))).second) throw BadInput(where, "this count is given twice, allowed: once");
    const auto fields = report::csv_fields(line);
    if (!fields || fields->size() != kFields.size())
      throw BadInput(where, fmt::format("{} fields, allowed: {}", fields ? fields->size() : 0, header));
    const auto& [experiment, cell, name, index, value] =
        std::tie((*fields)[0], (*fields)[1], (*fields)[2], (*fields)[3], (*fields)[4]);
    const auto found = counts.find({experiment, count_of(where, cell)});
    if (found == counts.end())
      throw BadInput(
          where, fmt::format("cell {} of {} is not in the manifest's experiments, allowed: cells of theirs", cell, experiment));
    std::map<std::string, std::uint64_t*>& slots = slots_of[found->second];
    if (slots.empty())
      found->second->each(
          [&](const char* own, std::size_t at, std::uint64_t& total) { slots[fmt::format("{} {}", own, at)] = &total; });
    const auto slot = slots.find(fmt::format("{} {}", name, count_of(where, index)));
    if (slot == slots.end())
      throw BadInput(where, fmt::format("no count {}[{}] in this cell, allowed: the counts that its method keeps", name, index));
    const std::uint64_t more = count_of(where, value);
    if (*slot->second + more < more)
      throw BadInput(where, fmt::format("{} is more than a count can be, allowed: sums below 2^64", value));
    *slot->second += more;
  }
  if (where.line == 0) throw BadInput({path, 0, 0}, "the file is empty, allowed: counts of a run");
}

}  // namespace specsim::run
