// The kernels that work on one row: a token's embedding, and the norm before every product.
#pragma once

#include "sim/lab/cuda/rows.h"

namespace specsim::cuda {

// hidden[row] = the embedding of the row's token.
struct Embed {
  static constexpr unsigned kThreads = 128;
  Rows rows;
  const std::uint32_t* text = nullptr;  // [sequence][text_stride]
  std::size_t text_stride = 0;
  const Bf16* embedding = nullptr;  // [vocab][stride]
  std::size_t stride = 0;           // a multiple of 8
  float* hidden = nullptr;          // [row][columns]
  unsigned columns = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {count, (columns + 8 * kThreads - 1) / (8 * kThreads), 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned row = thread.block_x();
    const unsigned first = 8 * (thread.block_y() * kThreads + thread.index());
    if (first >= columns) return;
    const std::uint32_t token = text[rows.sequence[row] * text_stride + rows.cached(row) + rows.slot[row]];
    const Words own = load(embedding + token * stride + first);
    float* const to = hidden + static_cast<std::size_t>(row) * columns + first;
    SPECSIM_UNROLL
    for (unsigned i = 0; i < 8; ++i)
      if (first + i < columns) to[i] = to_float({static_cast<std::uint16_t>(own.word[i / 2] >> (16 * (i % 2)))});
  }
};

// out[i] = x[i] weight[i] / sqrt(mean of squares + epsilon), as bf16.
struct RmsNorm {
  static constexpr unsigned kThreads = 512;
  static constexpr unsigned kOwn = 16;    // columns that a thread loads at once and keeps; further columns are read twice
  const float* x = nullptr;               // [row][columns]
  const std::uint32_t* source = nullptr;  // [row of out] its row of x; null: the same row
  const float* weight = nullptr;
  float epsilon = 0.0F;
  Bf16* out = nullptr;  // [row][stride]
  unsigned columns = 0;
  std::size_t stride = 0;
  unsigned count = 0;
  // The number of columns in the mean: fewer than `columns` if the others are known to be zero.
  float mean_columns = 0.0F;

  [[nodiscard]] Grid grid() const { return {count, 1, 1, kThreads, kThreads / kWarp * sizeof(float)}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    const unsigned row = thread.block_x();
    float weights[kOwn];
    take(weight, thread.index(), weights);
    thread.wait_for_previous();  // weights are constant; x comes from the previous kernel
    thread.release_next();
    const float* const from = x + static_cast<std::size_t>(source != nullptr ? source[row] : row) * columns;
    float own[kOwn];
    take(from, thread.index(), own);
    constexpr unsigned kKept = kOwn * kThreads;
    float squares = 0.0F;
    SPECSIM_UNROLL
    for (const float value : own) squares += value * value;
    for (unsigned i = thread.index() + kKept; i < columns; i += kThreads) squares += from[i] * from[i];
    squares = block_sum(thread, squares, kThreads, reinterpret_cast<float*>(thread.shared()));
    const float scale = reciprocal_root(squares / mean_columns + epsilon);
    Bf16* const to = out + row * stride;
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kOwn; ++k) {
      const unsigned i = thread.index() + k * kThreads;
      if (i < columns) to[i] = to_bf16(own[k] * scale * weights[k]);
    }
    for (unsigned i = thread.index() + kKept; i < columns; i += kThreads) to[i] = to_bf16(from[i] * scale * weight[i]);
  }

 private:
  SPECSIM_KERNEL void take(const float* values, unsigned first, float (&to)[kOwn]) const {
    SPECSIM_UNROLL
    for (unsigned k = 0; k < kOwn; ++k) to[k] = first + k * kThreads < columns ? values[first + k * kThreads] : 0.0F;
  }
};

}  // namespace specsim::cuda
