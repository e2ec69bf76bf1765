// counts.csv: the counts of a run's cells. All other results can be recomputed from them.
#pragma once

#include "sim/rounds/decode/counts.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace specsim::run {

// The counts of one cell, by its experiment and its index within it.
struct CellCounts {
  std::string experiment;
  std::size_t index = 0;
  const decode::Counts* counts = nullptr;
};
// One line per nonzero count.
std::string counts_csv(const std::vector<CellCounts>& cells);

// Adds the counts of such a file to those of the cells, whose sizes are already set. `path` is for messages. Throws BadInput
// with the line of an invalid count.
void add_counts_csv(const std::string& path, const std::string& text,
                    const std::map<std::pair<std::string, std::size_t>, decode::Counts*>& counts);

}  // namespace specsim::run
