// The kernels that write a layer's cache: they rotate by position, and compact a tree's path.
#pragma once

#include "sim/lab/cuda/rows.h"

namespace specsim::cuda {

// Rotates queries and keys by their positions (a head's first half with its second), writes queries out, and writes keys and
// values into the cache.
struct Rotate {
  static constexpr unsigned kThreads = 128;
  Rows rows;
  float* qkv = nullptr;  // [row][stride]: heads, then kv_heads keys, then values
  std::size_t stride = 0;
  const float* bias = nullptr;     // added first; null: none
  const float* cosines = nullptr;  // [position][head_dim / 2]
  const float* sines = nullptr;
  Bf16* queries = nullptr;  // [row][head][width]
  LayerCache cache;
  unsigned heads = 0;
  unsigned kv_heads = 0;
  unsigned head_dim = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const {
    return {((heads + 2 * kv_heads) * (head_dim / 2) + kThreads - 1) / kThreads, count, 1, kThreads, 0};
  }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned half = head_dim / 2;
    const unsigned item = thread.block_x() * kThreads + thread.index();
    const unsigned head = item / half;
    const unsigned i = item % half;
    if (head >= heads + 2 * kv_heads) return;
    const unsigned row = thread.block_y();
    const std::size_t slot = rows.cached(row) + rows.slot[row];
    const std::size_t position = rows.cached(row) + rows.depth[row];
    const std::size_t at = static_cast<std::size_t>(head) * head_dim + i;
    float low = qkv[row * stride + at];
    float high = qkv[row * stride + at + half];
    if (bias != nullptr) {
      low += bias[at];
      high += bias[at + half];
    }
    if (head >= heads + kv_heads) {
      const std::size_t base = (rows.sequence[row] * kv_heads + head - heads - kv_heads) * cache.width * cache.capacity + slot;
      cache.values[base + i * cache.capacity] = to_bf16(low);
      cache.values[base + (i + half) * cache.capacity] = to_bf16(high);
      return;
    }
    const float cosine = cosines[position * half + i];
    const float sine = sines[position * half + i];
    Bf16* const to = head < heads
                         ? queries + (static_cast<std::size_t>(row) * heads + head) * cache.width
                         : cache.keys + ((rows.sequence[row] * kv_heads + head - heads) * cache.capacity + slot) * cache.width;
    to[i] = to_bf16(low * cosine - high * sine);
    to[i + half] = to_bf16(high * cosine + low * sine);
  }
};

// Compacts the tokens of a tree's path: moves slot length + path[i] to length + i, in every layer.
struct KeepPath {
  static constexpr unsigned kThreads = 128;  // at least a head's width
  LayerCache cache;                          // layer 0; the others follow
  std::size_t layer_stride = 0;              // distance of two layers' keys, and of their values
  unsigned sequence = 0;
  unsigned kv_heads = 0;
  unsigned layers = 0;
  std::size_t length = 0;
  const std::uint32_t* path = nullptr;
  unsigned steps = 0;

  [[nodiscard]] Grid grid() const { return {layers * kv_heads, 1, 1, cache.width, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned d = thread.index();
    const std::size_t head = static_cast<std::size_t>(sequence) * kv_heads + thread.block_x() % kv_heads;
    const std::size_t layer = thread.block_x() / kv_heads * layer_stride;
    Bf16* const keys = cache.keys + layer + head * cache.capacity * cache.width + d;
    Bf16* const values = cache.values + layer + (head * cache.width + d) * cache.capacity;
    for (unsigned i = 0; i < steps; ++i) {
      keys[(length + i) * cache.width] = keys[(length + path[i]) * cache.width];
      values[length + i] = values[length + path[i]];
    }
  }
};

}  // namespace specsim::cuda
