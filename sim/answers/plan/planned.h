// Plans for the cells of experiments, and the files that hold them.
#pragma once

#include "sim/answers/plan/planner.h"
#include "sim/foundation/report/column.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::plan {

struct Planned {
  const spec::Cell* cell = nullptr;
  AcceptanceCurve curve;
  Plan plan;
};

struct PlanningOptions {
  int longest = 16;                    // longest draft length that is tried
  std::optional<AcceptanceCurve> own;  // the acceptance that is known; else what the cells' distributions say
  std::uint64_t rounds = 0;            // simulated at each draft length where a cell's distributions say it; 0: a default
  std::function<void(double done, double all)> progress;
};

// Throws BadInput for a cell with a placement other than serial, which a plan does not price.
void check_placements(const std::vector<const spec::Cell*>& cells);

// Plans for all cells; those that differ in prices alone share one acceptance curve.
std::vector<Planned> plan_cells(const std::vector<const spec::Cell*>& cells, const PlanningOptions& options);

// Names that plan_files() may give, whatever is planned.
const std::vector<std::string>& plan_file_names();
// Name and text of every file of a plan: plan.csv, waterfall.csv and, of one cell with costs in seconds, map.csv (the best draft
// length by batch, context and alpha, up to `longest`) and own_map.csv (at the cell's own acceptance), made by `threads` threads.
std::vector<std::pair<std::string, std::string>> plan_files(const std::vector<Planned>& planned, int longest, unsigned threads);
// The files of a plan and their columns, for the reference page.
std::vector<report::FileInfo> plan_file_infos();

}  // namespace specsim::plan
