// The experiments that plan and compare make where no config is given.
#pragma once

#include "sim/spec/values.h"

#include <cstdint>

namespace specsim::plan {

// What they stand on where nothing is said.
constexpr const char* kDefaultHardware = "h100-sxm";
constexpr const char* kDefaultTarget = "llama-3.1-8b";
constexpr const char* kDefaultDraft = "llama-3.2-1b";
constexpr std::int64_t kDefaultContext = 2048;  // tokens cached by each sequence
constexpr double kDefaultAlpha = 0.7;           // of the methods to compare

// One cell that is priced and never simulated: a plan without a config gets its acceptance from an option.
spec::ExperimentValues planning_experiment();

// Methods of one draft model at batches 1, 8 and 32. A draft token is accepted with probability `alpha` in each of 32 contexts,
// some of which all but settle the next token while others leave it open, as real text does: trees that follow the draft's
// confidence live on that.
spec::ExperimentValues methods_to_compare(double alpha);

}  // namespace specsim::plan
