// manifest.yaml: what made the files beside it.
#pragma once

#include "sim/run/runner.h"
#include "sim/spec/spec.h"

#include <string>
#include <vector>

namespace specsim::run {

struct Manifest {
  std::string command;
  std::string version;
  std::string commit;
  std::vector<std::string> files;    // of the experiments
  std::vector<std::string> configs;  // their configs as flow text, --set applied
  Shard shard;
  unsigned threads = 1;
  double wall_seconds = 0.0;
  std::size_t cells = 0;
  std::string verdict;   // of check; "" for run
  std::string identity;  // see identity()
};

std::string manifest_text(const Manifest& manifest);
// Throws BadInput, IoError.
Manifest read_manifest(const std::string& path);
// Names the simulation: equal for shards and resumptions of one run. Covers configs, not threads or time.
std::string identity(const std::vector<spec::Experiment>& experiments);

}  // namespace specsim::run
