// The sections of a config and their keys, as the reader takes them and the reference page lists them.
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
// The parameter `shrink`, which stands beside a placement's own.
const config::Parameter& shrink_parameter();
// Rounds of each independent sequence: what `context.sequence_rounds` may be.
config::Interval sequence_rounds_interval();

}  // namespace specsim::spec
