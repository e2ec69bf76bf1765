// Draws from a distribution that is used once, so that a table does not pay: two short passes instead of a construction.
#pragma once

#include "sim/foundation/base/token.h"

#include <span>
#include <vector>

namespace specsim::math {

// Weights summed in blocks, so that a draw searches the block sums first and then one block. The order of additions is fixed
// (eight interleaved accumulators), whatever the vector width.
class ScanSums {
 public:
  // Replaces the sums by those of `weights` (non-negative).
  void sum(std::span<const double> weights);
  [[nodiscard]] double total() const { return total_; }
  // The token at u * total() in the running sum of the weights that were summed; u in [0, 1). Never a token of weight 0 while
  // the total is positive.
  [[nodiscard]] Token pick(std::span<const double> weights, double u) const;

 private:
  static constexpr std::size_t kBlock = 512;
  std::vector<double> blocks_;
  double total_ = 0.0;
};

}  // namespace specsim::math
