// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw (SC 2011): a block of 128 random bits is a
// function of a 128-bit counter and a 64-bit key, so a uniform has an address instead of a place in a stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace specsim::rng {

struct Key {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

using Block = std::array<std::uint32_t, 4>;

Block philox4x32_10(Block counter, Key key);

// The two 64-bit words of a block: (word 1, word 0 of the counter's output) and (word 3, word 2).
struct BitsPair {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
BitsPair philox_bits(Block counter, Key key);

// Blocks for many counters: counter i is (c0 + positions[i], c1[i], c2 + lanes[i], c3). The results equal those of philox_bits
// one at a time, about four times as fast if the processor has AVX2. positions == nullptr: all are 0. c1 == nullptr: all use
// c1_common. lanes == nullptr: lane i is i.
struct CounterBatch {
  std::uint32_t c0 = 0;
  const std::uint32_t* positions = nullptr;
  std::uint32_t c1_common = 0;
  const std::uint32_t* c1 = nullptr;
  std::uint32_t c2 = 0;
  const std::uint32_t* lanes = nullptr;
  std::uint32_t c3 = 0;
};
void philox_batch(const CounterBatch& counters, Key key, std::size_t count, std::uint64_t* first, std::uint64_t* second);

}  // namespace specsim::rng
