// Kernels that fill and read memory: random weights, and the rate at which a device reads.
#pragma once

#include "sim/lab/cuda/random_bits.h"

namespace specsim::cuda {

// A block's fill of bf16 numbers, uniform with a standard deviation of `deviation`.
struct FillRandom {
  static constexpr unsigned kThreads = 256;
  Bf16* out = nullptr;    // 16-byte aligned
  std::size_t count = 0;  // a multiple of 8
  float deviation = 0.0F;
  std::uint64_t key = 0;
  std::uint64_t index = 0;

  [[nodiscard]] Grid grid() const {
    constexpr std::size_t kMostBlocks = 65536;
    const std::size_t blocks = (count / 8 + kThreads - 1) / kThreads;
    return {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), 1, 1, kThreads, 0};
  }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    const std::size_t stride = static_cast<std::size_t>(thread.blocks_x()) * kThreads;
    for (std::size_t i = static_cast<std::size_t>(thread.block_x()) * kThreads + thread.index(); i < count / 8; i += stride) {
      const RandomBits words = random_bits_at(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), index, key);
      for (unsigned k = 0; k < 8; ++k) {
        const std::uint64_t bits = ((k < 4 ? words.first : words.second) >> (16 * (k % 4))) & 0xFFFFU;
        constexpr float kSqrt12 = 3.4641016F;  // a uniform on [-1/2, 1/2] has variance 1/12
        out[8 * i + k] = to_bf16(((static_cast<float>(bits) + 0.5F) / 65536.0F - 0.5F) * kSqrt12 * deviation);
      }
    }
  }
};

// Reads memory and does nothing with it: the sum is written only if it has a value that never occurs.
struct ReadAll {
  static constexpr unsigned kThreads = 256;
  const Words* memory = nullptr;
  std::size_t count = 0;
  std::uint32_t* out = nullptr;
  unsigned blocks = 0;

  [[nodiscard]] Grid grid() const { return {blocks, 1, 1, kThreads, 0}; }
  SPECSIM_KERNEL void operator()(const Thread& thread) const {
    thread.take_turn();
    constexpr unsigned kAtOnce = 8;
    const std::size_t step = static_cast<std::size_t>(thread.blocks_x()) * kThreads * kAtOnce;
    std::uint32_t sum = 0;
    for (std::size_t i = static_cast<std::size_t>(thread.block_x()) * kThreads * kAtOnce + thread.index(); i < count; i += step) {
      Words words[kAtOnce];
      SPECSIM_UNROLL
      for (unsigned k = 0; k < kAtOnce; ++k) {
        words[k] = {};
        if (i + k * kThreads < count) words[k] = load_once(reinterpret_cast<const Bf16*>(memory + i + k * kThreads));
      }
      SPECSIM_UNROLL
      for (const Words& w : words) sum += w.word[0] ^ w.word[1] ^ w.word[2] ^ w.word[3];
    }
    if (sum == 0x5EED5EEDU) *out = sum;
  }
};

}  // namespace specsim::cuda
