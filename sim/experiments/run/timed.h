// Simulates the placements of an experiment's cells in time.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/hardware/engine/timeline.h"
#include "sim/hardware/placement/placement.h"

#include <string>

namespace specsim::run {

// Whether a cell has a placement to simulate, and a cost model in seconds.
bool is_timed(const spec::Cell& cell);
// The placement of such a cell compared with decoding without speculation. Writes it to `timeline` if given. The result depends
// on the cell alone.
placement::Comparison time_cell(const spec::Cell& cell, const decode::Prepared& tables, engine::Timeline* timeline);

// Throws BadInput at `where` if the cell has no timeline.
void check_traceable(const spec::Cell& cell, const Location& where);
// Writes the timeline of the cell's placement; the cell must have one. Throws IoError.
void write_trace(const spec::Cell& cell, const std::string& path);

}  // namespace specsim::run
