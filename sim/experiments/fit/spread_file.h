// The experiment file that fits of synthetic distributions write.
#pragma once

#include "sim/experiments/fit/spread_contexts.h"

#include <string>

namespace specsim::fit {

constexpr const char* kSpreadFile = "spread.yaml";

struct SpreadExperiment {
  std::string heading;  // lines of comment
  int vocab = 0;
  SpreadValues values;
  double temperature = 1.0;  // divides the logits of target and draft; 0: the likeliest tokens
  bool chosen = false;  // above temperature 0: the recorded drafts were chosen (argmax), so the experiment compares chosen drafts
  std::string context;  // the line of YAML, with comments before it
  bool trees = true;    // the sweep includes trees of likeliest tokens
  std::string left_out = {};  // methods that the sweep omits and why, as lines of comment
};

// A config for `specsim run` and `specsim compare`. It names a GPU, a pair of models and methods, which the user edits.
std::string spread_experiment(const SpreadExperiment& experiment);

}  // namespace specsim::fit
