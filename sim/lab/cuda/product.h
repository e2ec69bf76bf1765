// The kernels of matrix products of few rows, fused with the operation on each result.
#pragma once

#include "sim/lab/cuda/launch.h"

namespace specsim::cuda {

enum class Finish : unsigned {
  store,   // out = y
  add,     // out += y
  swiglu,  // rows of weights alternate between 8 gates and 8 ups: gated[8 i + r] = silu(y[16 i + r]) y[16 i + 8 + r]
};

// y[row][o] = weights[o] . x[row] for up to 8 kTiles rows. Weights are read once, directly into the operands of matrix
// instructions. The order of summation is free, so a thread uses 8 neighbouring columns of its row in place of those that the
// instruction expects. A sum does not depend on the number of rows.
template <unsigned kTiles>
struct ProductKernel {
  static constexpr unsigned kThreads = 256;
  static constexpr unsigned kWarps = kThreads / kWarp;
  static constexpr unsigned kOutputs = 16;  // outputs per block
  static constexpr unsigned kPieces = 4;    // pieces of 32 columns that a warp loads at a time
  static constexpr unsigned kMostRows = 8 * kTiles;
  const Bf16* weights = nullptr;  // [outputs][columns]
  unsigned outputs = 0;
  unsigned columns = 0;     // a multiple of 32
  const Bf16* x = nullptr;  // [rows][x_stride]
  std::size_t x_stride = 0;
  unsigned rows = 0;
  Finish finish = Finish::store;
  float* out = nullptr;   // [rows][out_stride]
  Bf16* gated = nullptr;  // [rows][out_stride]
  std::size_t out_stride = 0;

  [[nodiscard]] Grid grid() const {
    return {(outputs + kOutputs - 1) / kOutputs, 1, 1, kThreads, kWarps * kOutputs * kMostRows * sizeof(float)};
  }

  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.release_next();
    float sums[kTiles][4] = {};
    add_products(thread, sums);
    share(thread, sums);
    thread.sync();
    if (finish == Finish::swiglu)
      write_gated(thread);
    else
      write(thread);
  }

 private:
  // Sums over the warp's columns for the block's outputs and every row. The next pieces of weights are loaded while these are
  // multiplied.
  SPECSIM_KERNEL void add_products(const Thread& thread, float (&sums)[kTiles][4]) const {
    const unsigned warp = thread.index() / kWarp;
    const unsigned g = thread.index() % kWarp / 4;  // row and column of matrix instructions' operands (Thread::multiply)
    const unsigned t = thread.index() % kWarp % 4;
    const unsigned first = thread.block_x() * kOutputs;
    const Bf16* const upper = weights + static_cast<std::size_t>(first + g < outputs ? first + g : outputs - 1) * columns + 8 * t;
    const Bf16* const lower =
        weights + static_cast<std::size_t>(first + g + 8 < outputs ? first + g + 8 : outputs - 1) * columns + 8 * t;
    const unsigned step = kWarps * kPieces * 32;
    unsigned column = warp * kPieces * 32;
    Words a[kPieces];
    Words b[kPieces];
    fetch(upper, lower, column, a, b);
    thread.wait_for_previous();  // weights are constant; x comes from the previous kernel
    for (; column < columns; column += step) {
      Words next_a[kPieces];
      Words next_b[kPieces];
      fetch(upper, lower, column + step, next_a, next_b);
      SPECSIM_UNROLL
      for (unsigned p = 0; p < kPieces; ++p) {
        const unsigned from = column + 32 * p;
        SPECSIM_UNROLL
        for (unsigned tile = 0; tile < kTiles; ++tile) {
          const unsigned row = 8 * tile + g;
          Words y = {};
          if (row < rows && from < columns) y = load(x + row * x_stride + from + 8 * t);
          thread.multiply(sums[tile], a[p].word[0], b[p].word[0], a[p].word[1], b[p].word[1], y.word[0], y.word[1]);
          thread.multiply(sums[tile], a[p].word[2], b[p].word[2], a[p].word[3], b[p].word[3], y.word[2], y.word[3]);
        }
      }
      SPECSIM_UNROLL
      for (unsigned p = 0; p < kPieces; ++p) {
        a[p] = next_a[p];
        b[p] = next_b[p];
      }
    }
  }
  // Writes a warp's sums to shared memory: [warp][row][output].
  SPECSIM_KERNEL void share(const Thread& thread, const float (&sums)[kTiles][4]) const {
    auto* const shared = reinterpret_cast<float*>(thread.shared());
    const unsigned g = thread.index() % kWarp / 4;
    const unsigned t = thread.index() % kWarp % 4;
    SPECSIM_UNROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      float* const own = shared + (thread.index() / kWarp * kMostRows + 8 * tile) * kOutputs;
      own[(2 * t) * kOutputs + g] = sums[tile][0];
      own[(2 * t + 1) * kOutputs + g] = sums[tile][1];
      own[(2 * t) * kOutputs + g + 8] = sums[tile][2];
      own[(2 * t + 1) * kOutputs + g + 8] = sums[tile][3];
    }
  }
  SPECSIM_KERNEL void write_gated(const Thread& thread) const {
    const auto* const shared = reinterpret_cast<const float*>(thread.shared());
    for (unsigned i = thread.index(); i < rows * 8; i += kThreads) {
      const unsigned row = i / 8;
      const float gate = total(shared, row, i % 8);
      const float up = total(shared, row, i % 8 + 8);
      gated[row * out_stride + thread.block_x() * kOutputs / 2 + i % 8] = to_bf16(gate / (1.0F + exponential(-gate)) * up);
    }
  }
  SPECSIM_KERNEL void write(const Thread& thread) const {
    const auto* const shared = reinterpret_cast<const float*>(thread.shared());
    for (unsigned i = thread.index(); i < rows * kOutputs; i += kThreads) {
      const unsigned row = i / kOutputs;
      const unsigned output = thread.block_x() * kOutputs + i % kOutputs;
      if (output >= outputs) continue;
      const float y = total(shared, row, i % kOutputs);
      float& to = out[row * out_stride + output];
      to = finish == Finish::add ? to + y : y;
    }
  }
  SPECSIM_KERNEL void fetch(const Bf16* upper, const Bf16* lower, unsigned column, Words (&a)[kPieces],
                            Words (&b)[kPieces]) const {
    SPECSIM_UNROLL
    for (unsigned p = 0; p < kPieces; ++p) {
      a[p] = {};
      b[p] = {};
      if (column + 32 * p >= columns) continue;
      a[p] = load_once(upper + column + 32 * p);
      b[p] = load_once(lower + column + 32 * p);
    }
  }
  static SPECSIM_KERNEL float total(const float* shared, unsigned row, unsigned output) {
    float sum = 0.0F;
    for (unsigned w = 0; w < kWarps; ++w) sum += shared[(w * kMostRows + row) * kOutputs + output];
    return sum;
  }
};

// The same activation for products that a library computed.
struct Swiglu {
  static constexpr unsigned kThreads = 256;
  const float* y = nullptr;  // [row][2 width], alternating between 8 gates and 8 ups
  Bf16* gated = nullptr;     // [row][width]
  unsigned width = 0;
  unsigned count = 0;

  [[nodiscard]] Grid grid() const { return {(width + kThreads - 1) / kThreads, count, 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const unsigned i = thread.block_x() * kThreads + thread.index();
    if (i >= width) return;
    const float* const from = y + static_cast<std::size_t>(thread.block_y()) * 2 * width + i / 8 * 16 + i % 8;
    const float gate = from[0];
    gated[static_cast<std::size_t>(thread.block_y()) * width + i] = to_bf16(gate / (1.0F + exponential(-gate)) * from[8]);
  }
};

}  // namespace specsim::cuda
