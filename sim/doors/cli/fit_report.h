// What specsim fit prints.
#pragma once

#include "sim/experiments/fit/process_fit.h"
#include "sim/experiments/fit/spread_fit.h"

namespace specsim::cli {

// The record's own figures, how each process stands to them, what the fits say of draft lengths that they have not seen, and
// which process to use.
void print_fit(const fit::FitReport& report);
// The parameters of distributions like those of a record, and the figures that they meet.
void print_spread(const fit::SpreadFit& fit);

}  // namespace specsim::cli
