// The memory of Token Recycling: for each token, the target's likeliest successors when it was last verified.
#pragma once

#include "sim/rounds/draft/drafter.h"

#include <map>
#include <memory>
#include <vector>

namespace specsim::draft {

class RecycledMemory final : public BlockDrafter::Memory {
 public:
  [[nodiscard]] std::unique_ptr<BlockDrafter::Memory> copy() const override { return std::make_unique<RecycledMemory>(*this); }
  std::map<Token, std::vector<Token>> likeliest;  // [token], the likeliest first
};

// The shipped template of 80 tokens.
tokens::Tree recycling_tree();

// Fills the tree after the text's last token, level by level, from the memory. Omits children of tokens that have not been
// verified yet, and ranks that are not kept.
void recycled_tree(const tokens::Tree& tree, const RecycledMemory& memory, Token last, ChosenBlock& block);

// Stores the target's likeliest successors of the text's last token and of every token of the block, accepted or not. The round's
// own pass computes them, for later rounds. For a token that occurs twice in the pass, the last occurrence counts.
void recycle(DrafterInput& input, const ChosenBlock& block, RecycledMemory& memory);

}  // namespace specsim::draft
