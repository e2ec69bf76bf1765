// What the options of specsim serve ask for.
#pragma once

#include "sim/answers/load/curve.h"
#include "sim/answers/load/experiment.h"
#include "sim/foundation/base/files_read.h"

#include <boost/program_options.hpp>

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
  load::ServeExperiment experiment;
  bool both = true;            // where the experiment speculates, the plain server too
  std::optional<Sweep> sweep;  // nullopt: one run
  int replications = 1;        // runs for each point of the sweep
  bool capacity = true;        // the largest stable rate is looked for
  bool dry_run = false;        // what would be run is told, and nothing is
  std::vector<int> lengths;    // draft lengths, each of whose largest load within the SLO is looked for
  unsigned threads = 1;
  std::string out;  // directory for the files; empty: none are written
  bool resume = false;
  bool force = false;
  bool steps = false;      // steps.csv as well
  std::string timeline;    // file; empty: none
  std::size_t tracks = 0;  // requests that the timeline shows
  std::string identity;    // equal for tasks with the same results
};

void add_serve_options(boost::program_options::options_description& description);
// `read`: the files that are read from here on, none of which may be written. Throws BadInput.
ServeTask read_serve_task(const boost::program_options::variables_map& values, const FilesRead& read);

}  // namespace specsim::cli
