// Where tokens of a pass stand in their sequences, and where their keys and values lie. Rows are tokens, side by side; strides
// count elements. Rows of bf16 numbers that are multiplied have a stride that is a multiple of 32, with zeros behind their
// columns.
#pragma once

#include "sim/lab/cuda/launch.h"

namespace specsim::cuda {

// Where a pass's tokens stand. A sequence's tokens lie side by side; the token at `slot` behind those cached has place
// lengths[sequence] + shift + slot in the text and in the cache, and `depth` takes slot's place where positions are counted.
struct Rows {
  const std::uint32_t* sequence = nullptr;   // [row]
  const std::uint32_t* slot = nullptr;       // [row]
  const std::uint32_t* depth = nullptr;      // [row]
  const std::uint64_t* ancestors = nullptr;  // [row] bit j: sees slot j; null: every token sees those before it and itself
  const std::uint32_t* lengths = nullptr;    // [sequence] cached tokens
  int shift = 0;

  SPECSIM_KERNEL std::size_t cached(unsigned row) const {
    return static_cast<std::size_t>(static_cast<std::int64_t>(lengths[sequence[row]]) + shift);
  }
};

// The cache of one layer. Values lie transposed, so that attention reads them as they are multiplied.
struct LayerCache {
  Bf16* keys = nullptr;      // [sequence][kv head][slot][width]
  Bf16* values = nullptr;    // [sequence][kv head][width][slot]
  unsigned width = 0;        // width of a head, padded
  std::size_t capacity = 0;  // slots, a multiple of 32
};

}  // namespace specsim::cuda
