// What Token Recycling keeps: behind each token the target's likeliest ones where it was last verified.
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

// Fills the tree behind the text's last token, level by level, by what is kept; children of a token that has not been verified
// yet, and ranks that are not kept, are left out.
void recycled_tree(const tokens::Tree& tree, const RecycledMemory& memory, Token last, ChosenBlock& block);

// Keeps what the target says behind the text's last token and behind every token of the block, accepted or not: the round's own
// pass tells it, for the rounds to come. Of a token that occurs twice in the pass the last occurrence holds.
void recycle(Sight& sight, const ChosenBlock& block, RecycledMemory& memory);

}  // namespace specsim::draft
