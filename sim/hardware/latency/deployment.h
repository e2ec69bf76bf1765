// A deployment: the GPU, the models, the engine, and the choices of kernels for its passes.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/engine.h"
#include "sim/hardware/model/model_shape.h"

#include <optional>
#include <string>
#include <utility>

namespace specsim::cost {

// A GPU of the draft's own, and the way between it and the target's.
struct DraftPlace {
  Hardware hardware;
  double link_latency = 0.0;    // seconds, one way
  double link_bandwidth = 0.0;  // bytes per second, either direction
  bool link_stated = false;     // by the config; else a default

  // Seconds of a round's messages: the ids of the drafted tokens to the target, and for each sequence the number of accepted ones
  // and the token after them back.
  [[nodiscard]] double link_seconds(double batch, double verified_rows) const {
    constexpr double kIdBytes = 4.0;
    return 2.0 * link_latency + batch * (verified_rows - 1.0 + 2.0) * kIdBytes / link_bandwidth;
  }
};

struct Deployment {
  Hardware hardware;
  std::optional<ModelShape> target;
  std::optional<ModelShape> draft;  // none: no model drafts
  Engine engine;
  std::string kernels = "automatic";        // engine whose measured kernels run: one of kernel_choices()
  std::string attention = "automatic";      // how attention of several tokens reads the cache: one of attention_kernels()
  bool host_time_unknown = false;           // the engine's host time per round depends on the method, and no method was named
  std::optional<double> memory_share = {};  // of the GPU's memory; none: what the engine's rules leave
  // share of a plain kernel's bandwidth that narrow weights reach; none: the engine's
  std::optional<double> quantized_efficiency = {};
  std::optional<DraftPlace> draft_place = {};  // none: the draft runs on the target's GPUs
};

// The draft on its own GPU, as passes of the draft see it. Only for a deployment with draft_place.
inline Deployment on_draft_place(const Deployment& deployment) {
  Deployment own = deployment;
  own.hardware = deployment.draft_place->hardware;
  own.draft_place.reset();
  if (own.hardware.kernels == nullptr) own.kernels = "automatic";  // kernels may be named that only the target's GPU has
  return own;
}
// The same as a server of that model alone, whose memory it fills.
inline Deployment alone_on_draft_place(const Deployment& deployment) {
  Deployment own = on_draft_place(deployment);
  own.target = std::exchange(own.draft, std::nullopt);
  return own;
}

}  // namespace specsim::cost
