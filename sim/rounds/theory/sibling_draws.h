// Every draw of a node's children that there can be.
#pragma once

#include "sim/rounds/theory/tree_enumeration.h"

#include <functional>
#include <span>
#include <vector>

namespace specsim::theory {

// Every ordered draw of at most `drafts` siblings, f(tokens, probability): without replacement it ends with the distribution's
// support, and the likeliest tokens end with it too.
void each_draw(std::span<const double> draft, int drafts, TreeSampling sampling,
               const std::function<void(const std::vector<int>&, double)>& f);

}  // namespace specsim::theory
