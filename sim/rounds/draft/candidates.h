// Shared by drafters that grow a tree at run time: candidate nodes and their values. The best candidates are drafted.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <cstddef>
#include <vector>

namespace specsim::draft {

// No child is worth more than its parent, so the best n nodes always form a tree. Among equal values the earlier node counts as
// better.
struct Candidates {
  Candidates() {
    constexpr std::size_t kUsual = 64;  // nodes: most trees need no second allocation
    value.reserve(kUsual);
    value.push_back(1.0);
    block.tokens.reserve(kUsual);
    block.tree.nodes.reserve(kUsual);
  }

  struct Child {
    int parent = 0;
    int rank = 0;
    Token token = 0;
    double value = 0.0;
  };

  ChosenBlock block;
  std::vector<double> value;  // [node]; the root is worth 1

  // The `width` likeliest children of each of `nodes`, without those of probability 0. A child's value is its parent's value
  // times its probability times `decay`.
  [[nodiscard]] std::vector<Child> children_of(DrafterInput& input, const std::vector<int>& nodes, std::size_t width,
                                               double decay = 1.0) const;
  // The best `most` of all children of `nodes`, in the order of children_of().
  [[nodiscard]] std::vector<Child> best_children(DrafterInput& input, const std::vector<int>& nodes, std::size_t most) const;
  // Returns the new nodes.
  std::vector<int> add(const std::vector<Child>& children);
  [[nodiscard]] bool better(int a, int b) const;
  // The sum of the best `most` values without the root's.
  [[nodiscard]] double sum_of_best(std::size_t most) const;
  // Drafts the best `most` nodes, or these nodes and all their ancestors.
  void best(std::size_t most, ChosenBlock& drafted) const;
  void paths_to(const std::vector<int>& nodes, ChosenBlock& drafted) const;

 private:
  // Drafts these nodes, which include their parents.
  void draft(const std::vector<int>& kept, ChosenBlock& drafted) const;
};

}  // namespace specsim::draft
