// Whether a server of an engine starts on a deployment's GPUs, by that engine's own rule for memory and its default context.
#pragma once

#include "sim/hardware/latency/deployment.h"

#include <optional>
#include <string>

namespace specsim::plan {

struct ServerFit {
  std::string why_not;            // why the server would not start; "": it does
  std::optional<double> context;  // of a sequence, to be given by a flag; none: the default does
  double planned = 0.0;           // tokens of the longest planned sequence, rounded up
  bool unknown = false;           // the model's own context, which the server takes by default, is not known here
  bool past_model = false;        // the planned context is longer than the model's own
};

// vLLM refuses to start if one sequence of its context does not fit next to the weights. The others reduce the context.
// `context`: cached tokens of a sequence when it ends.
ServerFit fit_for_one(const cost::Deployment& deployment, cost::MemoryRules rules, double context, int draft_length);

// llama.cpp lays out the cache of all its sequences when it starts.
ServerFit fit_for_all(const cost::Deployment& deployment, double batch, double context, int draft_length);

}  // namespace specsim::plan
