#include "sim/hardware/latency/small_kernels.h"

#include <algorithm>
#include <cmath>

namespace specsim::cost {

std::optional<double> IndexerKernel::seconds(const IndexWork& work) const {
  constexpr double kScoreBytes = 4.0;   // fp32
  constexpr double kScorePasses = 2.0;  // written by the product with the keys, read by the selection
  // Share of the arithmetic in 8 bits: fitted to prompts of 16,384 and 32,768 tokens, where each pair takes 21 ps (H200, vLLM
  // 0.24) and 12 ps (B200), of which the selection takes 3.
  constexpr double kScoreShare = 0.5;
  const double scores = work.rows * work.scored * kScoreBytes * kScorePasses;
  const double reading = (work.key_bytes + scores) / (hardware_.bandwidth * hardware_.calibration.memory_efficiency);
  const double narrow = peak_flops(hardware_, Arithmetic::fp8);
  const double operations = 2.0 * work.heads * work.head_dim * work.rows * work.scored;
  const double scoring = operations / (kScoreShare * (narrow > 0.0 ? narrow : hardware_.flops));
  // One multiprocessor selects the best entries of a row.
  const double turns = std::ceil(work.rows / std::max(1.0, hardware_.multiprocessors));
  return std::max(reading, scoring) + 1e-9 * selection_ns_per_key_ * turns * work.scored;
}

}  // namespace specsim::cost
