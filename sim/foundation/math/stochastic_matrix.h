// Finite Markov chains given as row-major matrices.
#pragma once

#include <vector>

namespace specsim::math {

// The stationary distribution of an irreducible chain: rows of `transition` (states x states) sum to 1. Solves the linear system
// by elimination; SPECSIM_CHECKs that the solution is unique.
std::vector<double> stationary_distribution(const std::vector<double>& transition, int states);

}  // namespace specsim::math
