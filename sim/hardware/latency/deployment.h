// A deployment: the GPU, the models, the engine, and the choices of kernels for its passes.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/model/model_shape.h"

#include <optional>
#include <string>

namespace specsim::cost {

struct Deployment {
  Hardware hardware;
  std::optional<ModelShape> target;
  std::optional<ModelShape> draft;  // none: no model drafts
  Engine engine;
  std::string kernels = "automatic";    // engine whose measured kernels run: one of kernel_choices()
  std::string attention = "automatic";  // how attention of several tokens reads the cache: one of attention_kernels()
  bool host_time_unknown = false;       // the engine's host time per round depends on the method, and no method was named
  std::optional<double> memory_share;   // of the GPU's memory; none: what the engine's rules leave
  std::optional<double>
      quantized_efficiency;  // share of a plain kernel's bandwidth that narrow weights reach; none: the engine's
};

}  // namespace specsim::cost
