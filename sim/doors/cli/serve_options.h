// What the options of specsim serve ask for.
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

inline const std::vector<std::string> kServeFiles = {"summary.csv", "requests.csv", "requests_plain.csv",
                                                     "steps.csv",   "curve.csv",    "slo.csv"};  // beside manifest.yaml

struct Sweep {
  load::Load load = load::Load::rate;
  std::vector<double> values;
};

struct ServeTask {
  load::ServeRequest request;  // what the options say of the server
  ConfigOptions configs;
  AcceptanceOptions acceptance;
  SpendingOptions spending;
  bool alone = false;    // the server without speculation is left out
  bool capacity = true;  // the largest stable rate is looked for

  load::ServeExperiment experiment;
  std::optional<Sweep> sweep;  // nullopt: one run
  int replications = 1;        // runs for each point of the sweep
  bool dry_run = false;        // what would be run is told, and nothing is
  std::vector<int> lengths;    // draft lengths, each of whose largest load within the SLO is looked for
  unsigned threads = 0;
  std::string out;  // directory for the files; empty: none are written
  bool resume = false;
  bool force = false;
  bool steps = false;         // steps.csv as well
  std::string timeline;       // file; empty: none
  std::size_t tracks = 1000;  // requests that the timeline shows
  std::string identity;       // equal for tasks with the same results

  // Whether the server without speculation runs too.
  [[nodiscard]] bool both() const { return experiment.speculation && !alone; }
};

void add_serve_options(CommandLine& line, ServeTask& task);
// Works out the task that the options ask for. `read`: the files that are read from here on, none of which may be written. Throws
// BadInput.
void read_serve_task(const CommandLine& line, const FilesRead& read, ServeTask& task);

}  // namespace specsim::cli
