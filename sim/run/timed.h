// The placements of an experiment's cells, simulated in time.
#pragma once

#include "sim/judge/rows.h"

#include <string>
#include <vector>

namespace specsim::run {

// Fills Row::timed of every cell that has a placement and a cost model in seconds: a function of the cells alone.
void time_rows(std::vector<judge::Row>& rows);

// Throws BadInput, at `where`, for a cell without a timeline.
void check_traceable(const spec::Cell& cell, const Location& where);
// Writes the timeline of a traceable cell's placement. Throws IoError.
void write_trace(const spec::Cell& cell, const std::string& path);

}  // namespace specsim::run
