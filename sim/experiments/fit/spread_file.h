// The experiment that fits of synthetic distributions leave behind.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"

#include <string>

namespace specsim::fit {

constexpr const char* kSpreadFile = "spread.yaml";

struct SpreadExperiment {
  std::string heading;  // lines of comment
  int vocab = 0;
  SpreadValues values;
  double temperature = 1.0;   // divides the logits of target and draft; 0: the likeliest tokens
  bool chosen = false;        // above temperature 0: what was recorded are drafts that were chosen, and such are ranked
  std::string context;        // the line of YAML, with comments before it
  bool trees = true;          // trees of likeliest tokens are in the sweep
  std::string left_out = {};  // what is not in it and why, as lines of comment
};

// A config for `specsim run` and `specsim compare`, which names a GPU, a pair of models and methods, to be changed.
std::string spread_experiment(const SpreadExperiment& experiment);

}  // namespace specsim::fit
