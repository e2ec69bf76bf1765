// Positions of a pass's tokens in their sequences, and addresses of their keys and values. Rows are tokens, side by side; strides
// count elements. Rows of bf16 numbers that are multiplied have a stride that is a multiple of 32, padded with zeros after their
// columns.
#pragma once

#include "sim/lab/cuda/launch.h"

namespace specsim::cuda {

// Positions of a pass's tokens. A sequence's tokens are side by side. The token at `slot` after the cached ones has place
// lengths[sequence] + shift + slot in the text and in the cache; its position for the model uses `depth` instead of slot.
struct Rows {
  const std::uint32_t* sequence = nullptr;   // [row]
  const std::uint32_t* slot = nullptr;       // [row]
  const std::uint32_t* depth = nullptr;      // [row]
  const std::uint64_t* ancestors = nullptr;  // [row] bit j: sees slot j; null: every token sees itself and all earlier ones
  const std::uint32_t* lengths = nullptr;    // [sequence] cached tokens
  int shift = 0;

  SPECSIM_KERNEL std::size_t cached(unsigned row) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(lengths[sequence[row]]) + shift);
  }
};

// The cache of one layer. Values are stored transposed, in the order in which attention multiplies them.
struct LayerCache {
  Bf16* keys = nullptr;      // [sequence][kv head][slot][width]
  Bf16* values = nullptr;    // [sequence][kv head][width][slot]
  unsigned width = 0;        // width of a head, padded
  std::size_t capacity = 0;  // slots, a multiple of 32
};

}  // namespace specsim::cuda
