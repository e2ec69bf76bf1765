// A drafter whose tree is the same every round.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <utility>

namespace specsim::draft {

// A chain of `length` tokens.
tokens::Tree path_of(int length);

class TreeDrafter : public BlockDrafter {
 public:
  // Each level of the tree is one pass of the draft model, over the level's parents.
  TreeDrafter(tokens::Tree tree, tokens::Siblings siblings);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] const tokens::Tree* tree() const override { return &tree_; }
  [[nodiscard]] BlockWork work(int nodes) const override;

 protected:
  Shape shape_;

 private:
  tokens::Tree tree_;
};

}  // namespace specsim::draft
