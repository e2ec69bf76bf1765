// How far the latency model's error leaves a time, or the order of two ways to decode, open.
#pragma once

#include "sim/hardware/latency/round_time.h"

namespace specsim::plan {

// One round as it was estimated. `verified_rows`: tokens per sequence in the target's pass.
struct RoundPrice {
  const cost::CostModel* cost = nullptr;
  cost::Workload workload;
  double verified_rows = 1.0;
  cost::RoundTime time;
};

// Standard error of the logarithm of speed(a) / speed(b) on one server. What the two have in common cancels: each factor of the
// server (cost::FactorBelief) counts by the difference of its shares of the two rounds, what no factor expresses by how unlike
// the two settings are (cost::discrepancy_correlation), and the kernels' errors from one number of rows to another
// (cost::Uncertainty::kernel_error) where these differ. Passes of one draft model err alike; those of two models err apart. 0 where
// the cost model claims no error.
double price_noise(const RoundPrice& a, const RoundPrice& b);
// Standard error of the logarithm of one round's time.
double price_error(const RoundPrice& price);

}  // namespace specsim::plan
