// Identifies runs: which runs are the same, and how they differ.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/checksum.h"

#include <string>
#include <vector>

namespace specsim::run {

// A hash of the configs. It is equal for all shards and resumptions of one run. It covers configs and seeds, but not threads or
// time.
std::string identity(const std::vector<spec::Experiment>& experiments);

// All that the counts of a run depend on. Counts of different origins must not be added up.
struct Origin {
  std::string run;              // identity() and the shard, "i/n"
  std::string program;          // version and commit
  std::vector<FileSum> inputs;  // files that the configs name: traces, tables, models; by name
};
// The origin of results that this program makes now, with its version and commit.
Origin new_origin(std::string run, std::vector<FileSum> inputs = {});

// The files that were read, except the experiments' own, whose text the identity already covers.
std::vector<FileSum> inputs_of(const std::vector<spec::Experiment>& experiments, const std::vector<FileSum>& read);

// Differences between the input files read before and those read now, in words; "" if there are none.
std::string changed_inputs(const std::vector<FileSum>& before, const std::vector<FileSum>& now);

}  // namespace specsim::run
