// EAGLE-2's tree, which grows where the draft is confident.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <cstddef>

namespace specsim::draft {

class DynamicTree : public BlockDrafter {
 public:
  DynamicTree(int depth, int width, int nodes);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  void choose(DrafterInput& input, Memory* memory, ChosenBlock& block) const override;
  [[nodiscard]] BlockWork work(int nodes) const override;

 protected:
  Shape shape_;

 private:
  std::size_t width_;
};

}  // namespace specsim::draft
