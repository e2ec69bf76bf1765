// Shared by drafters that search the text: finds where its suffix occurred before.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace specsim::draft {

// Adds paths of tokens to an empty block, with shared prefixes once, breadth first; siblings in the order of the paths.
void add_paths(ChosenBlock& block, const std::vector<std::vector<Token>>& paths);

// Number of tokens before text[end] that equal the text's last ones, at most `most`; `end` is within the text.
inline std::size_t match_length(std::span<const Token> text, std::size_t end, std::size_t most) {
  std::size_t length = 0;
  const std::size_t possible = std::min(end, most);
  while (length < possible && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
  return length;
}

// Reports numbers that are not tokens in a table of tokens, if the config gives one.
void check_tokens(const config::Arguments& arguments, const std::string& key, Diagnostics& diagnostics);

// A drafter that copies from the text, without a draft model: its only cost is the target's pass over the copy.
class TextDrafter : public BlockDrafter {
 public:
  TextDrafter(int draft_length, int nodes);
  [[nodiscard]] const Shape& shape() const override { return shape_; }
  [[nodiscard]] BlockWork work(int nodes) const override { return {{}, 1.0 + nodes}; }

 protected:
  Shape shape_;
};

}  // namespace specsim::draft
