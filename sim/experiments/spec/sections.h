// The sections of a config and their keys, used by the reader and the reference page.
#pragma once

#include "sim/experiments/spec/cell.h"
#include "sim/foundation/config/fields.h"

#include <string>
#include <vector>

namespace specsim::spec {

struct SectionInfo {
  std::string path;
  std::string summary;
  std::vector<config::Parameter> parameters;
};
const std::vector<SectionInfo>& config_sections();

// The parameter that every placement has in addition to its own.
config::Declaration<placement::PlacedBatch> shrink_field();

struct TheorySection {
  std::string name = "exact";
  bool expect_refuted = false;
};

const config::Fields<Cell>& top_fields();
const config::Fields<Cell>& pair_fields();
const config::Fields<Cell>& context_fields();
const config::Fields<Method>& decode_fields();
const config::Fields<placement::PlacedBatch>& workload_fields();
const config::Fields<placement::PlacedBatch>& placement_fields();
const config::Fields<TheorySection>& theory_fields();
// The allowed values of `context.sequence_rounds`, the rounds of each independent sequence.
config::Interval sequence_rounds_interval();

}  // namespace specsim::spec
