// Layers of experts as grouped products.
#include "sim/hardware/latency/experts_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cost {

std::optional<double> GroupedExperts::seconds(const ExpertsWork& work) const {
  const double fixed = 1e-6 * hardware_.calibration.experts_us;  // choosing, sorting, activation, sum
  const double up = (work.gated ? 2.0 : 1.0) * work.width;
  return fixed + over_whole_experts(work.met, [&](double met) {
           const double rows = std::max(1.0, work.rows / met);  // of one expert
           return products_.estimate({rows, work.hidden, up, met, work.type}).seconds +
                  products_.estimate({rows, work.width, work.hidden, met, work.type}).seconds;
         });
}

KernelError GroupedExperts::error(const ExpertsWork& /*work*/) const {
  if (hardware_.calibration.experts_us > 0.0) return {0.0, kStatedError};
  return {0.0, hardware_.unverified ? kUncheckedExpertsSpread : kUnmeasuredExpertsSpread};
}

KernelLabel GroupedExperts::label(const ExpertsWork& work) const {
  return {fmt::format("{:g} grouped products", work.met),
          "calibration of " + (hardware_.fitted_on.empty() ? hardware_.name : hardware_.fitted_on)};
}

}  // namespace specsim::cost
