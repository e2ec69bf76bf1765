// Logits whose scale differs from context to context.
#pragma once

#include "sim/foundation/rng/address.h"

namespace specsim::families {

constexpr double kLargestScale = 1000.0;  // the largest scale of any context: logits of some thousands stay numbers

// A context's standard deviation of logits: middle exp(spread deviate), at most kLargestScale. `deviate`: how open or how hard
// this context is, in standard deviations over contexts; nullptr: it is drawn, so that scales are log-normal over contexts with
// median `middle` and `spread` the standard deviation of their logarithm. Without a spread it is `middle` and takes no random
// number.
double scale_of_context(double middle, double spread, const double* deviate, rng::Stream& random);

}  // namespace specsim::families
