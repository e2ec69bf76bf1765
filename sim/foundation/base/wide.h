// The 128-bit product of two 64-bit words.
#pragma once

#include <cstdint>

namespace specsim {

__extension__ using uint128 = unsigned __int128;

// floor(word * n / 2^64): a uniform word becomes a uniform index below n.
constexpr std::uint64_t scale_bits(std::uint64_t word, std::uint64_t n) {
  return static_cast<std::uint64_t>((uint128{word} * n) >> 64);
}

}  // namespace specsim
