// Random bits in a kernel: the same numbers at the same addresses as on the CPU (sim/foundation/rng).
#pragma once

#include "sim/lab/cuda/launch.h"

namespace specsim::cuda {

struct RandomBits {
  std::uint64_t first;
  std::uint64_t second;
};

// Philox4x32-10 as in sim/foundation/rng/philox.h.
SPECSIM_KERNEL RandomBits random_bits_at(std::uint32_t c0, std::uint32_t c1, std::uint64_t sequence, std::uint64_t key) {
  std::uint32_t x[4] = {c0, c1, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)};
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  SPECSIM_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * x[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * x[2];
    x[0] = static_cast<std::uint32_t>(product1 >> 32) ^ x[1] ^ low;
    x[1] = static_cast<std::uint32_t>(product1);
    x[2] = static_cast<std::uint32_t>(product0 >> 32) ^ x[3] ^ high;
    x[3] = static_cast<std::uint32_t>(product0);
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return {x[0] | std::uint64_t{x[1]} << 32, x[2] | std::uint64_t{x[3]} << 32};
}

// Purposes of sim/foundation/rng/address.h.
constexpr std::uint32_t kDraftAccept = 1U << 24;
constexpr std::uint32_t kFinalToken = 2U << 24;

SPECSIM_KERNEL double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace specsim::cuda
