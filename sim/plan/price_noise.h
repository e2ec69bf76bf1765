// How far prices leave the order of two ways to decode open.
#pragma once

#include "sim/cost/round_time.h"

namespace specsim::plan {

// One round as it was priced. `verified_rows`: tokens per sequence in the target's pass.
struct RoundPrice {
  const cost::CostModel* cost = nullptr;
  cost::Workload workload;
  double verified_rows = 1.0;
  cost::RoundTime time;
};

// Standard error of the logarithm of speed(a) / speed(b), as far as prices make it (CostModel::relative_error). Passes over the
// same rows err alike in both; over other numbers of rows they err apart for seven tenths of the variance, since residuals of
// measured products correlate at 0.3. Passes of one draft model err alike; those of two models err apart. 0 where the cost
// model claims no error.
double price_noise(const RoundPrice& a, const RoundPrice& b);

}  // namespace specsim::plan
