// Plans for the cells of experiments, and the files that contain them.
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
  int longest = 16;                    // longest candidate draft length
  std::optional<AcceptanceCurve> own;  // known acceptance; otherwise that of the cells' distributions
  std::uint64_t rounds = 0;            // rounds simulated per draft length, if acceptance comes from distributions; 0: a default
  std::function<void(double done, double all)> progress;
};

// Throws BadInput for a cell with a placement other than serial, which a plan does not cover.
void check_placements(const std::vector<const spec::Cell*>& cells);

// Plans for all cells. Cells that differ only in cost share one acceptance curve.
std::vector<Planned> plan_cells(const std::vector<const spec::Cell*>& cells, const PlanningOptions& options);

// All names that plan_files() may return.
const std::vector<std::string>& plan_file_names();
// Name and text of every file of a plan: plan.csv and waterfall.csv. For a single cell with costs in seconds also map.csv (the
// best draft length by batch, context and alpha, up to `longest`) and own_map.csv (at the cell's own acceptance). Uses `threads`
// threads.
std::vector<std::pair<std::string, std::string>> plan_files(const std::vector<Planned>& planned, int longest, unsigned threads);
// The files of a plan and their columns, for the reference page.
std::vector<report::FileInfo> plan_file_infos();

}  // namespace specsim::plan
