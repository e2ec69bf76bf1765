// Long-run shares of a Markov chain's states.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::theory {

// Stationary distribution of a Markov chain with `transition`, states x states row-major (Grassmann-Taksar-Heyman elimination: no
// subtraction). Requires exactly one recurrent class, which may be smaller than all states, and periodic.
[[nodiscard]] std::vector<double> stationary_distribution(const std::vector<double>& transition, std::size_t states);

}  // namespace specsim::theory
