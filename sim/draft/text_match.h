// What drafters that look into the text share: finding where it has been before.
#pragma once

#include "sim/draft/drafter.h"

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::draft {

// Adds paths of tokens to an empty block, shared beginnings once, breadth first; siblings in the order of the paths.
void add_paths(ChosenBlock& block, const std::vector<std::vector<Token>>& paths);

// True: the `length` tokens that end before text[end] are the text's last ones.
bool matches_end(std::span<const Token> text, std::size_t end, std::size_t length);

// A drafter that copies out of the text, at no cost of a draft model: one target pass over what it found.
class TextDrafter : public BlockDrafter {
 public:
  TextDrafter(int draft_length, int nodes);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] Work work(int nodes) const override { return {{}, 1.0 + nodes}; }

 protected:
  Shape shape_;
};

}  // namespace specsim::draft
