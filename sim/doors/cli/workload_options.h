// What plan and compare share: options that name a workload.
#pragma once

#include "sim/doors/cli/options.h"
#include "sim/doors/cli/spending_options.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/experiments/spec/spec.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace specsim::cli {

// The models that acceptance was recorded with, named as cost.draft and cost.target take them ("": not known), and the places
// that say so.
struct RecordedPair {
  std::string draft;
  Location draft_where;
  std::string target;
  Location target_where;
  std::int64_t tensor_parallel = 1;
  bool one_pass = false;  // all drafts of a round came of one pass
};
RecordedPair recorded_pair(const spec::AcceptanceTable& table);

// The options of a workload.
struct WorkloadOptions {
  ConfigOptions configs;
  std::optional<std::string> hardware;
  std::optional<std::string> target;
  std::optional<std::string> draft;
  std::vector<std::int64_t> batches;  // empty: not said
  std::vector<std::int64_t> contexts;
  std::optional<double> tensor_parallel;
  std::optional<double> draft_tensor_parallel;
  std::optional<std::string> dtype;
  std::optional<double> weight_bits;
  std::optional<double> kv_bits;
  std::optional<std::string> engine;
  SpendingOptions spending;  // of plan alone
};

// Adds the options hardware, target, draft, context, tensor-parallel, draft-tensor-parallel, weight-bits, kv-bits and engine,
// which describe a workload, and set and seed, which change whatever experiment there is.
void add_workload_options(CommandLine& line, WorkloadOptions& options);
// The range of a number of the workload.
config::Interval workload_interval(const std::string& key);
// Refuses --weight-bits, and --kv-bits beside a cache, together with --dtype, which holds `types`: one of the two would be lost.
// Throws BadInput.
void refuse_two_types(const CommandLine& line, const std::string& types);
// The options of a workload that were not given, with the defaults that stand in: "--hardware h100-sxm --context 2048"; "" where
// all were given. `recorded` are the models unless an option says otherwise.
std::string assumptions(const WorkloadOptions& options, const RecordedPair& recorded = {});
// What of `recorded` no option replaces: "--target llama-3.1-70b --tensor-parallel 4 --draft llama-3.1-8b"; "" where all is.
std::string taken_of(const WorkloadOptions& options, const RecordedPair& recorded);
// Warns where --draft none leaves out the model whose drafts are recorded, so that no pass of it is priced.
void warn_of_left_out_draft(const WorkloadOptions& options, const RecordedPair& recorded);

// What the options say of the workload, as changes to an experiment's config: one value replaces the experiment's, several are an
// axis of its sweep. Throws BadInput, too where --set touches what an option stands for: one of the two would be lost.
// `built_in`: there is no config of the user's.
std::vector<spec::Override> workload_overrides(const WorkloadOptions& options, bool built_in, const RecordedPair& recorded = {});

}  // namespace specsim::cli
