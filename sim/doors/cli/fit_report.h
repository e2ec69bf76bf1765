// The output of specsim fit.
#pragma once

#include "sim/experiments/fit/process_fit.h"
#include "sim/experiments/fit/spread_fit.h"

namespace specsim::cli {

// Prints the record's own figures, how well each process fits them, the predictions for draft lengths that the fits have not
// seen, and which process to use.
void print_fit(const fit::FitReport& report);
// Prints the parameters of distributions fitted to a record, and the figures that they match.
void print_spread(const fit::SpreadFit& fit);

}  // namespace specsim::cli
