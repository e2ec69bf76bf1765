// Which GPU and models a cost model prices, where it knows them by name: for reports, and for the rules of serving engines.
#pragma once

#include "sim/hardware/cost/engine.h"
#include "sim/hardware/cost/hardware.h"
#include "sim/hardware/cost/model_shape.h"

#include <optional>
#include <string>
#include <utility>

namespace specsim::cost {

struct Deployment {
  Hardware hardware;
  std::optional<ModelShape> target;
  std::optional<ModelShape> draft;      // none: nothing is drafted by a model of its own
  Engine engine;                        // what host and launches are priced as
  std::string kernels = "automatic";    // which engine's kernels are priced by their fits: one of kernel_choices()
  std::string attention = "automatic";  // how attention of several tokens reads the cache, where kernels are priced by fits
  bool round_unpriced = false;          // the engine counts a round's host time by method, and none was named
};

// With the engine as it runs on the deployment's GPU.
inline Deployment as_it_runs(Deployment deployment) {
  deployment.engine = engine_on(std::move(deployment.engine), deployment.hardware.compute_capability,
                                deployment.target.has_value() && deployment.target->experts > 0.0);
  return deployment;
}

}  // namespace specsim::cost
