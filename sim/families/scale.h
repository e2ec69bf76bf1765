// Logits whose scale differs from context to context.
#pragma once

#include "sim/rng/address.h"

namespace specsim::families {

constexpr double kLargestScale = 1000.0;  // the largest scale of any context: logits of some thousands stay numbers

// A context's standard deviation of logits: log-normal over contexts with median `middle` and `spread` the standard deviation of
// its logarithm, at most kLargestScale. Without a spread it is `middle` and takes no random number.
double scale_of_context(double middle, double spread, rng::Stream& random);

}  // namespace specsim::families
