// The task that the options of specsim serve describe.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"
#include "sim/answers/load/from_options.h"
#include "sim/doors/cli/options.h"
#include "sim/doors/cli/spending_options.h"
#include "sim/doors/cli/stated_acceptance.h"
#include "sim/foundation/base/files_read.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

inline const std::vector<std::string> kServeFiles = {"summary.csv", "classes.csv", "requests.csv", "requests_plain.csv",
                                                     "steps.csv",   "curve.csv",   "slo.csv"};  // next to manifest.yaml

struct Sweep {
  load::Load load = load::Load::rate;
  std::vector<double> values;
};

struct ServeTask {
  load::ServeRequest request;  // the server's options
  ConfigOptions configs;
  AcceptanceOptions acceptance;
  SpendingOptions spending;
  bool alone = false;    // omit the server without speculation
  bool capacity = true;  // find the largest stable rate

  load::ServeExperiment experiment;
  std::optional<Sweep> sweep;  // nullopt: one run
  int replications = 1;        // runs per point of the sweep
  bool dry_run = false;        // print what would run, and stop
  std::vector<int> lengths;    // draft lengths whose largest load within the SLO is searched
  unsigned threads = 0;
  std::string out;  // directory for the files; empty: no files
  bool resume = false;
  bool force = false;
  bool steps = false;         // write steps.csv too
  std::string timeline;       // file; empty: none
  std::size_t tracks = 1000;  // requests in the timeline
  std::string identity;       // equal for tasks with the same results

  // Whether the server without speculation runs too.
  [[nodiscard]] bool both() const { return experiment.speculation && !alone; }
};

void add_serve_options(CommandLine& line, ServeTask& task);
// Determines the task from the options. `read`: the files that are read from here on, none of which may be written. Throws
// BadInput.
void read_serve_task(const CommandLine& line, const FilesRead& read, ServeTask& task);

}  // namespace specsim::cli
