// The interface of the page docs/explorer to the simulator: a question as JSON, its answer as JSON. The page only draws.
// Compiled for browsers by scripts/web, and natively like all other code, so that tests can ask both.
#pragma once

#include <string>

namespace specsim::web {

// Questions are objects {"ask": NAME, ...}:
// - parts: names of GPUs, models, engines, published acceptance, rules
// - plan, with WORKLOAD, "acceptance": everything that `specsim plan` prints for one workload
// - map, with WORKLOAD, "acceptance": best draft length by batch and context
// - landscape, with WORKLOAD or "cost_ratio": speedup by alpha and draft length, break-even
// - mass, with "config": one position's accepted, rejected and residual mass by token
// - rounds, with "config", "until": simulates the config's rounds up to that one; counts so far
// - step, with "config", "round": one round, choice by choice
// - serve, with "config", "load", "values", "capacity": a server's curve over the load, with and without speculation; if
//   "capacity" is true, what each completes when saturated
// - replay, with "config", "load", "value", "from", "steps", "plain": steps of the server at one load, from a given second on
//
// A WORKLOAD has hardware, target, draft, engine, tensor_parallel, dtype, kv_bits, batch, context, longest: the options of
// `specsim plan`, which may be omitted like those. A config is one of `specsim run`, or of `specsim serve` for serve and replay,
// as JSON. The answer to an invalid question is {"error": the program's own message}.
std::string answer(const std::string& question);

}  // namespace specsim::web
