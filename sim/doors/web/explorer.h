// What the page of docs/explorer asks of the simulator: a question as JSON, its answer as JSON. The page draws and computes
// nothing itself. Compiled for browsers by scripts/web, and natively as every other room, so that tests can ask both.
#pragma once

#include <string>

namespace specsim::web {

// Questions are objects {"ask": NAME, ...}:
//   parts                                             names of GPUs, models, engines, published acceptance, rules
//   plan        WORKLOAD, "acceptance"                everything that `specsim plan` says of one workload
//   map         WORKLOAD, "acceptance"                best draft length by batch and context
//   landscape   WORKLOAD or "cost_ratio"              speedup by alpha and draft length, break-even
//   mass        "config"                              one position: accepted, rejected and residual mass by token
//   rounds      "config", "until"                     simulates the config's rounds up to there; counts so far
//   step        "config", "round"                     one round, choice by choice
//   serve       "config", "load", "values",           a server's curve over the load, with its speculation and without, and
//               "capacity"                            where true, what each completes when saturated
//   replay      "config", "load", "value", "from",    steps of the server at one load, from a second on
//               "steps", "plain"
// A WORKLOAD has hardware, target, draft, engine, tensor_parallel, dtype, kv_bits, batch, context, longest: as the options of
// `specsim plan`, and left out alike. A config is one of `specsim run`, of the last two one of `specsim serve`, as JSON.
// The answer to what cannot be read is {"error": the program's own message}.
std::string answer(const std::string& question);

}  // namespace specsim::web
