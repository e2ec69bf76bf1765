// What plan and compare share: options that name a workload.
#pragma once

#include "sim/cli/options.h"
#include "sim/spec/spec.h"

#include <boost/program_options.hpp>

#include <string>
#include <vector>

namespace specsim::cli {

// The draft model that acceptance was recorded with, named as cost.draft takes it ("": not known), and the place that says so.
struct RecordedDraft {
  std::string model;
  Location where;
};

// Adds the options hardware, target, draft, context, tensor-parallel, draft-tensor-parallel, weight-bits, kv-bits and engine,
// which describe a workload, and set and seed, which change whatever experiment there is.
void add_workload_options(boost::program_options::options_description& description);
// The options of a workload that were not given, with the defaults that stand in: "--hardware h100-sxm --context 2048"; "" where
// all were given. `recorded` is the draft unless an option says otherwise.
std::string assumptions(const Options& options, const RecordedDraft& recorded = {});
// Whether the draft is `recorded`.
bool takes_recorded(const Options& options, const RecordedDraft& recorded);

// What the options say of the workload, as changes to an experiment's config: one value replaces the experiment's, several are an
// axis of its sweep. Throws BadInput, too where --set touches what an option stands for: one of the two would be lost.
// `built_in`: there is no config of the user's.
std::vector<spec::Override> workload_overrides(const Options& options, bool built_in, const RecordedDraft& recorded = {});

}  // namespace specsim::cli
