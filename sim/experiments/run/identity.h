// Which runs are the same, and what makes them different.
#pragma once

#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/checksum.h"

#include <string>
#include <vector>

namespace specsim::run {

// The configs as a number: equal for shards and resumptions of one run. Covers configs and seeds, not threads or time.
std::string identity(const std::vector<spec::Experiment>& experiments);

// All that the counts of a run depend on. Counts of different origins must not be added up.
struct Origin {
  std::string run;              // identity() and the shard, "i/n"
  std::string program;          // version and commit
  std::vector<FileSum> inputs;  // files that the configs name: traces, tables, models; by name
};
// The origin of results that this program makes now, with its version and commit.
Origin new_origin(std::string run, std::vector<FileSum> inputs = {});

// The files that were read beside the experiments' own, whose text is in the identity already.
std::vector<FileSum> inputs_of(const std::vector<spec::Experiment>& experiments, const std::vector<FileSum>& read);

// How the files that were read before differ from those that are read now, in words; "" where they do not.
std::string changed_inputs(const std::vector<FileSum>& before, const std::vector<FileSum>& now);

}  // namespace specsim::run
