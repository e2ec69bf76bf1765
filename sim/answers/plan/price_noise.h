// How far prices leave the order of two ways to decode open.
#pragma once

#include "sim/hardware/latency/round_time.h"

namespace specsim::plan {

// One round as it was priced. `verified_rows`: tokens per sequence in the target's pass.
struct RoundPrice {
  const cost::CostModel* cost = nullptr;
  cost::Workload workload;
  double verified_rows = 1.0;
  cost::RoundTime time;
};

// Standard error of the logarithm of speed(a) / speed(b) on one server, as far as prices make it. What the server makes of all of
// its steps (CostModel::server_error) falls out. What its rounds have beyond its plain steps (CostModel::round_error) counts
// where one of the two drafts and the other does not. Of kernels (CostModel::kernel_error) passes
// over the same rows err alike in both; over other numbers of rows a share CostModel::shared_variance() of the error's variance
// is common to both, and counts by the difference of the passes' shares of their rounds; the rest is independent. Passes of one
// draft model err alike; those of two models err apart. 0 where the cost model claims no error.
double price_noise(const RoundPrice& a, const RoundPrice& b);
// Standard error of the logarithm of one round's time, with both of these.
double price_error(const RoundPrice& price);

}  // namespace specsim::plan
