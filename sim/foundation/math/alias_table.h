// Walker's alias method (Vose's construction, IEEE TSE 1991): a token from 64 random bits by one memory access.
// An entry packs the column's threshold (46 bits) and its alias (18 bits) in 8 bytes, so a table of 32,000 tokens takes
// 256 kB. Rounding a threshold to 46 bits moves the distribution by at most 2^-46 in total variation; tokens of weight zero
// are never drawn.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/foundation/base/wide.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::math {

// Draws from a table of `size` entries: column = floor(bits size / 2^64); the remaining bits decide between the column's own
// token and its alias.
inline Token alias_pick(const std::uint64_t* entries, std::uint64_t size, std::uint64_t bits) {
  const uint128 product = uint128{bits} * size;
  const auto column = static_cast<std::uint64_t>(product >> 64);
  const auto rest = static_cast<std::uint64_t>(product);
  const std::uint64_t entry = entries[column];
  // Masks instead of a conditional: compilers turn that into a branch, which is mispredicted half of the time.
  const std::uint64_t own = (rest >> 18) < (entry >> 18) ? 1 : 0;
  const std::uint64_t alias = entry & 0x3FFFF;
  return static_cast<Token>(alias ^ ((alias ^ column) & (0 - own)));
}

// Fills entries[0..size) from weights (non-negative, finite, any positive sum; size at most kMaxVocab).
// A sum of zero gives a table that draws token 0: the caller must not use it. `scratch` is reused between calls.
struct AliasScratch {
  std::vector<double> scaled;
  std::vector<std::uint32_t> small;
  std::vector<std::uint32_t> large;
};
void build_alias(std::span<const double> weights, std::uint64_t* entries, AliasScratch& scratch);

// A table that owns its entries.
class AliasTable {
 public:
  AliasTable() = default;
  explicit AliasTable(std::span<const double> weights);
  [[nodiscard]] Token pick(std::uint64_t bits) const { return alias_pick(entries_.data(), entries_.size(), bits); }

 private:
  std::vector<std::uint64_t> entries_;
};

}  // namespace specsim::math
