// The uncertainty of a time, or of the order of two ways to decode, due to the latency model's error.
#pragma once

#include "sim/hardware/latency/round_time.h"

namespace specsim::plan {

// One round as estimated. `verified_rows`: tokens per sequence in the target's pass.
struct RoundEstimate {
  const cost::CostModel* cost = nullptr;
  cost::Workload workload;
  double verified_rows = 1.0;
  cost::RoundTime time;
};

// Standard error of the logarithm of speed(a) / speed(b) on one server. Shared errors cancel. Each factor of the server
// (cost::FactorBelief) counts by the difference of its shares of the two rounds. The error that no factor expresses counts by
// how much the two settings differ (cost::discrepancy_correlation). Kernel errors between numbers of rows
// (cost::Uncertainty::kernel_error) count if these numbers differ. Errors of passes of one draft model are equal; those of two
// models are independent. 0 if the cost model states no error.
double latency_noise(const RoundEstimate& a, const RoundEstimate& b);
// Standard error of the logarithm of one round's time.
double estimate_error(const RoundEstimate& estimate);

}  // namespace specsim::plan
