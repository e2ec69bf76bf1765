// Attention by the data sheet and the GPU's calibration.
#include "sim/hardware/latency/attention_kernels.h"

#include <algorithm>

namespace specsim::cost {

namespace {
constexpr double kLatentEfficiency = 0.67;  // share of the peak that latent attention reaches: FlashMLA, 660 of 989 TFLOP/s, H800
}  // namespace

std::optional<double> CalibratedAttention::seconds(const AttentionWork& work) const {
  const Calibration& c = hardware_.calibration;
  const double flops = hardware_.flops * (work.over_one_vector() ? kLatentEfficiency : 1.0);
  const bool expanded = expands_ && work.prompt && work.tokens > kMostAsVerified && !work.kind.picked;
  const double operations = work.operations_per_key(expanded) * work.heads * work.sequences * work.tokens *
                            work.kind.looked_at(work.cached, work.pairs) / work.shards;
  const double reading = work.bytes() / (hardware_.bandwidth * c.attention_efficiency);
  return (work.same_launch ? 0.0 : kSecondsPerMicro * fixed_us_) + work.unequal * std::max(reading, operations / flops);
}

KernelError CalibratedAttention::error(const AttentionWork& /*work*/) const { return {0.0, kStatedError}; }

KernelLabel CalibratedAttention::label(const AttentionWork& /*work*/) const {
  return {"data sheet", "calibration of " + (hardware_.fitted_on.empty() ? hardware_.name : hardware_.fitted_on)};
}

}  // namespace specsim::cost
