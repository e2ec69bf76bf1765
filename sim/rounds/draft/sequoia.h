// The best tree if siblings are accepted by rank, whatever the context: a dynamic programme over size, depth and children.
#pragma once

#include "sim/rounds/tokens/tree.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::draft {

// acceptance[i]: the probability that the i-th sibling is the accepted one, given that their parent is. A node's value is the
// product along its path, the root's is 1; the sum of the values is the expected tokens per round.
class SequoiaProgramme {
 public:
  // budget: most drafted nodes; depth: most levels. O(budget^2 depth acceptance.size()) time.
  SequoiaProgramme(std::span<const double> acceptance, int budget, int depth);

  // Expected tokens per round of the best tree with `nodes` drafted nodes on at most `depth` levels.
  [[nodiscard]] double tokens(int nodes, int depth) const { return best(nodes + 1, depth).value; }
  [[nodiscard]] tokens::Tree tree(int nodes, int depth) const;

 private:
  struct Best {
    double value = 0.0;
    int children = 0;
  };
  [[nodiscard]] const Best& best(int size, int depth) const {
    return best_[static_cast<std::size_t>(depth) * sizes_ + static_cast<std::size_t>(size)];
  }
  [[nodiscard]] std::size_t at(int children, int size, int depth) const {
    return (static_cast<std::size_t>(depth) * (ranks_ + 1) + static_cast<std::size_t>(children)) * sizes_ +
           static_cast<std::size_t>(size);
  }

  std::size_t sizes_;  // budget + 2: sizes of a subtree, its own root included
  std::size_t ranks_;
  std::vector<Best> best_;            // [depth][size]: over all numbers of children
  std::vector<std::uint16_t> share_;  // [depth][children][size]: nodes of the last child's subtree
};

}  // namespace specsim::draft
