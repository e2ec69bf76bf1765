// counts.csv: the counts of a run's cells, from which everything else can be computed anew.
#pragma once

#include "sim/rounds/decode/counts.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace specsim::run {

// The counts of one cell, by its experiment and its place within it.
struct CellCounts {
  std::string experiment;
  std::size_t index = 0;
  const decode::Counts* counts = nullptr;
};
// A line for each count that is not zero.
std::string counts_csv(const std::vector<CellCounts>& cells);

// Adds the counts of such a file to those of the cells, which have their sizes already. `path` is for messages. Throws BadInput
// with the line of what does not fit.
void add_counts_csv(const std::string& path, const std::string& text,
                    const std::map<std::pair<std::string, std::size_t>, decode::Counts*>& counts);

}  // namespace specsim::run
