#include "sim/experiments/audit/bit_space.h"

namespace specsim::audit {

Piece column(std::size_t index, std::size_t columns) {
  const auto begin = [&](std::size_t i) { return ((uint128{i} << 64) + columns - 1) / columns; };
  return {static_cast<std::uint64_t>(begin(index)), static_cast<std::uint64_t>(begin(index + 1) - 1)};
}

std::vector<double> implied_distribution(std::size_t size, const std::function<Token(std::uint64_t)>& pick) {
  std::vector<uint128> counts(size, 0);
  std::vector<std::uint64_t> hints;
  for (const Piece& piece : pieces_of(size, pick, hints)) {
    const Token token = pick(piece.first);
    SPECSIM_CHECK(token < size, "token {} of {}", token, size);
    counts[token] += piece.size();
  }
  std::vector<double> distribution;
  for (const uint128 count : counts) distribution.push_back(static_cast<double>(share(count)));
  return distribution;
}

}  // namespace specsim::audit
