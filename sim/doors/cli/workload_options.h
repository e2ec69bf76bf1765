// Options of plan and compare that name a workload.
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

// The models of recorded acceptance, as cost.draft and cost.target take them ("": unknown), and the places that name them.
struct RecordedPair {
  std::string draft;
  Location draft_where;
  std::string target;
  Location target_where;
  std::int64_t tensor_parallel = 1;
  bool one_pass = false;  // all drafts of a round came from one pass
};
RecordedPair recorded_pair(const spec::AcceptanceTable& table);
// Names of the acceptance tables that are published for a target and its draft ("none": n-grams).
std::vector<std::string> published_tables(const std::string& target, const std::string& draft);
// "; published for this pair: --acceptance NAME", or, for n-grams, those of other targets; "" where there is no table.
std::string published_for(const std::string& target, const std::optional<std::string>& draft);

// The options of a workload.
struct WorkloadOptions {
  ConfigOptions configs;
  std::optional<std::string> hardware;
  std::optional<std::string> target;
  std::optional<std::string> draft;
  std::optional<std::string> draft_hardware;
  std::optional<double> draft_link_us;
  std::vector<std::int64_t> batches;  // empty: not given
  std::vector<std::int64_t> contexts;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> draft_tensor_parallel;
  std::optional<std::string> dtype;
  std::optional<double> weight_bits;
  std::optional<double> kv_bits;
  std::optional<std::string> engine;
  SpendingOptions spending;  // of plan alone
};

// Adds the options hardware, target, draft, draft-hardware, draft-link-us, context, tensor-parallel, draft-tensor-parallel,
// weight-bits, kv-bits and engine, which describe a workload. Adds set and seed too, which change any experiment.
void add_workload_options(CommandLine& line, WorkloadOptions& options);
// The allowed range of a number of the workload.
config::Interval workload_interval(const std::string& key);
// Rejects --weight-bits together with --dtype (whose value is `types`), and --kv-bits if --dtype includes a cache, since one of
// the two would be ignored. Throws BadInput.
void refuse_two_types(const CommandLine& line, const std::string& types);
// The workload options that were not given, with their defaults: "--hardware h100-sxm --context 2048"; "" if all were given. The
// models are those of `recorded` unless an option names others.
std::string assumptions(const WorkloadOptions& options, const RecordedPair& recorded = {});
// The settings of `recorded` that no option replaces: "--target llama-3.1-70b --tensor-parallel 4 --draft llama-3.1-8b"; "" if
// all are replaced.
std::string taken_of(const WorkloadOptions& options, const RecordedPair& recorded);
// Warns if --draft none removes the model with which the acceptance was recorded, so that drafting costs no time.
void warn_of_missing_draft(const WorkloadOptions& options, const RecordedPair& recorded);

// The workload options as changes to an experiment's config: one value replaces the experiment's, several become an axis of its
// sweep. Throws BadInput, also if --set changes the same setting as an option, since one of the two would be ignored.
// `built_in`: the user gave no config.
std::vector<spec::Override> workload_overrides(const WorkloadOptions& options, bool built_in, const RecordedPair& recorded = {});

}  // namespace specsim::cli
