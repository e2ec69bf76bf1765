// Long-run shares of a Markov chain's states.
#pragma once

#include <cstddef>
#include <vector>

namespace specsim::theory {

// Stationary distribution of a Markov chain, transition states x states row-major (Grassmann-Taksar-Heyman elimination: no
// subtraction). Requires one recurrent class; its states may be fewer than all, and periodic.
[[nodiscard]] std::vector<double> stationary_distribution(const std::vector<double>& transition, std::size_t states);

}  // namespace specsim::theory
