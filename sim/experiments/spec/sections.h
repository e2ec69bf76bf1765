// The sections of a config and their keys, used by the reader and the reference page.
#pragma once

#include "sim/foundation/config/arguments.h"

#include <string>
#include <vector>

namespace specsim::spec {

struct SectionInfo {
  std::string path;
  std::string summary;
  std::vector<config::Parameter> parameters;
};
const std::vector<SectionInfo>& config_sections();

const std::vector<config::Parameter>& top_parameters();
const std::vector<config::Parameter>& pair_parameters();
const std::vector<config::Parameter>& context_parameters();
const std::vector<config::Parameter>& decode_parameters();
const std::vector<config::Parameter>& workload_parameters();
const std::vector<config::Parameter>& placement_parameters();
const std::vector<config::Parameter>& theory_parameters();
// The parameter `shrink`, which every placement has in addition to its own.
const config::Parameter& shrink_parameter();
// The allowed values of `context.sequence_rounds`, the rounds of each independent sequence.
config::Interval sequence_rounds_interval();

}  // namespace specsim::spec
