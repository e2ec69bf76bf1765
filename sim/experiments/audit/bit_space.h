// The space of 64-bit random numbers, cut into pieces on which a function is constant.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/wide.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::audit {

// The numbers first .. last, both included.
struct Piece {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] uint128 size() const { return uint128{last} - first + 1; }
};

// The share of `count` numbers in all 2^64.
inline long double share(uint128 count) { return std::ldexp(static_cast<long double>(count), -64); }

// One of `columns` equal columns, as in an alias table of that size.
inline Piece column(std::size_t index, std::size_t columns) {
  const auto begin = [&](std::size_t i) { return ((uint128{i} << 64) + columns - 1) / columns; };
  return {static_cast<std::uint64_t>(begin(index)), static_cast<std::uint64_t>(begin(index + 1) - 1)};
}

// Finds where `at` flips from at(whole.first) to at(whole.last), which differ. Returns the first number of the second kind.
// Tries `hints` first.
template <class At>
std::uint64_t find_flip(const Piece& whole, const At& at, const std::vector<std::uint64_t>& hints) {
  const auto before = at(whole.first);
  const auto after = at(whole.last);
  for (const std::uint64_t hint : hints)
    if (hint > whole.first && hint <= whole.last && at(hint - 1) == before && at(hint) == after) return hint;
  std::uint64_t low = whole.first;
  std::uint64_t high = whole.last;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const auto found = at(middle);
    SPECSIM_CHECK(found == before || found == after, "a third outcome at random number {} between {} and {}", middle, whole.first,
                  whole.last);
    (found == before ? low : high) = middle;
  }
  return high;
}

// All random numbers, cut into pieces on which `at` is constant, in order. Assumes at most one flip per column. Adds new flips
// to `hints`.
template <class At>
std::vector<Piece> pieces_of(std::size_t columns, const At& at, std::vector<std::uint64_t>& hints) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < columns; ++i) {
    const Piece whole = column(i, columns);
    if (at(whole.first) == at(whole.last)) {
      pieces.push_back(whole);
    } else {
      const std::uint64_t flip = find_flip(whole, at, hints);
      if (std::find(hints.begin(), hints.end(), flip) == hints.end()) hints.push_back(flip);
      pieces.push_back({whole.first, flip - 1});
      pieces.push_back({flip, whole.last});
    }
  }
  for (const Piece& piece : pieces) {
    const auto expected = at(piece.first);
    for (const std::uint64_t part : {std::uint64_t{1}, std::uint64_t{2}}) {
      const std::uint64_t bits = piece.first + (piece.last - piece.first) / 3 * part;
      SPECSIM_CHECK(at(bits) == expected, "more than one flip between random numbers {} and {}", piece.first, piece.last);
    }
  }
  return pieces;
}

// Random numbers with the same effect.
template <class Effect>
struct Group {
  Effect effect;
  uint128 size = 0;
  std::vector<Piece> pieces;
};

template <class Effect>
void add_to(std::vector<Group<Effect>>& groups, const Effect& effect, const Piece& piece) {
  auto at = std::find_if(groups.begin(), groups.end(), [&](const Group<Effect>& group) { return group.effect == effect; });
  if (at == groups.end()) at = groups.insert(groups.end(), Group<Effect>{effect, 0, {}});
  at->size += piece.size();
  at->pieces.push_back(piece);
}

}  // namespace specsim::audit
