// The placements of an experiment's cells, simulated in time.
#pragma once

#include "sim/experiment/results.h"

#include <string>
#include <vector>

namespace specsim::experiment {

// Fills Row::timed of every cell that has a placement and a cost model in seconds: a function of the cells alone.
void time_rows(std::vector<Row>& rows);

// Writes the timeline of the cell's placement. Throws IoError; BadInput, before anything is written, where there is none.
void check_traceable(const Cell& cell);
void write_trace(const Cell& cell, const std::string& path);

}  // namespace specsim::experiment
