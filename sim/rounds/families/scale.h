// Logits whose scale differs from context to context.
#pragma once

#include "sim/foundation/rng/address.h"

namespace specsim::families {

constexpr double kLargestScale = 1000.0;  // the largest scale of any context: exponentials of such logits do not overflow

// A context's standard deviation of logits: middle exp(spread deviate), at most kLargestScale. `deviate`: the context's deviation
// in standard deviations over contexts. nullptr: it is drawn, so that scales are log-normal over contexts with median `middle`,
// and `spread` is the standard deviation of their logarithm. With spread 0 the scale is `middle` and no random number is used.
double scale_of_context(double middle, double spread, const double* deviate, rng::Stream& random);

}  // namespace specsim::families
