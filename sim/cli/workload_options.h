// What plan and compare share: options that name a workload.
#pragma once

#include "sim/cli/options.h"
#include "sim/spec/values.h"

#include <boost/program_options.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

// hardware, target, draft, context, tensor-parallel, draft-tensor-parallel, weight-bits, kv-bits, engine; set and seed, which
// change whatever experiment there is.
void add_workload_options(boost::program_options::options_description& description);
// Those of them that nothing replaces, as options: "--hardware h100-sxm --context 2048"; "" where all is said.
std::string assumptions(const Options& options);

// What the options say of the workload; what they leave open stays as the experiment has it.
struct WorkloadChoice {
  std::optional<config::Value> hardware;  // as cost.hardware takes it: a name, the path of a file, or a map
  std::optional<spec::ModelValues> target;
  std::optional<spec::ModelValues> draft;
  std::optional<config::Value> engine;
  // One value in place of the experiment's, several as an axis of its sweep; empty: nothing is said.
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> context_lengths;

  // In an experiment that is made without a config.
  void change(spec::ExperimentValues& values) const;
  // In place of what a config says.
  [[nodiscard]] std::vector<spec::Override> overrides() const;
};
// Throws BadInput, too where --set touches what an option stands for: one of the two would be lost. `built_in`: there is no
// config of the user's.
WorkloadChoice read_workload(const Options& options, bool built_in);

}  // namespace specsim::cli
