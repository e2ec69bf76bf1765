// Rounds of an acceptance table. The table replaces distributions: it only states how often the child of each rank is the
// accepted one.
#pragma once

#include "sim/experiments/judge/cell_theory.h"

namespace specsim::judge {

// The theory of cells whose context process is of kind by_rank: sums over the nodes of the tree.
Coverage sum_over_nodes();

}  // namespace specsim::judge
