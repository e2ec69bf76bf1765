// What plan and compare share: options that name a workload.
#pragma once

#include "sim/doors/cli/options.h"
#include "sim/experiments/spec/read_acceptance_table.h"
#include "sim/experiments/spec/spec.h"

#include <boost/program_options.hpp>

#include <cstdint>
#include <functional>
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

// Adds the options hardware, target, draft, context, tensor-parallel, draft-tensor-parallel, weight-bits, kv-bits and engine,
// which describe a workload, and set and seed, which change whatever experiment there is.
void add_workload_options(boost::program_options::options_description& description);
// Refuses --weight-bits, and --kv-bits beside a cache, together with --dtype, which holds `types`: one of the two would be lost.
// `has`: whether an option was given. Throws BadInput.
void refuse_two_types(const std::function<bool(const char*)>& has, const std::string& types);
// The options of a workload that were not given, with the defaults that stand in: "--hardware h100-sxm --context 2048"; "" where
// all were given. `recorded` are the models unless an option says otherwise.
std::string assumptions(const Options& options, const RecordedPair& recorded = {});
// What of `recorded` no option replaces: "--target llama-3.1-70b --tensor-parallel 4 --draft llama-3.1-8b"; "" where all is.
std::string taken_of(const Options& options, const RecordedPair& recorded);
// Warns where --draft none leaves out the model whose drafts are recorded, so that no pass of it is priced.
void warn_of_left_out_draft(const Options& options, const RecordedPair& recorded);

// What the options say of the workload, as changes to an experiment's config: one value replaces the experiment's, several are an
// axis of its sweep. Throws BadInput, too where --set touches what an option stands for: one of the two would be lost.
// `built_in`: there is no config of the user's.
std::vector<spec::Override> workload_overrides(const Options& options, bool built_in, const RecordedPair& recorded = {});

}  // namespace specsim::cli
