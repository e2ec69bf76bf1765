// The files that a fit writes: its figures as CSV, and an experiment for each process.
#pragma once

#include "sim/experiments/fit/process_fit.h"
#include "sim/foundation/report/column.h"

#include <string>
#include <utility>
#include <vector>

namespace specsim::fit {

// All names that fit_files() can return.
std::vector<std::string> fit_file_names();
// Names and texts: fit.csv; held_out.csv if other draft lengths were held out; PROCESS.yaml for `specsim run`.
std::vector<std::pair<std::string, std::string>> fit_files(const FitReport& report);
// fit.csv, held_out.csv and their columns, for the reference page.
std::vector<report::FileInfo> described_files();

}  // namespace specsim::fit
