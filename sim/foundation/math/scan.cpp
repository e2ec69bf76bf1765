#include "sim/foundation/math/scan.h"

#include <algorithm>
#include <array>

namespace specsim::math {

namespace {

constexpr std::size_t kWays = 8;

double fold(const std::array<double, kWays>& sums) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace

void ScanSums::sum(std::span<const double> weights) {
  blocks_.clear();
  total_ = 0.0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, weights.size() - begin);
    const double* const w = weights.data() + begin;
    std::array<double, kWays> sums{};
    std::size_t i = 0;
    for (; i + kWays <= size; i += kWays)
      for (std::size_t k = 0; k < kWays; ++k) sums[k] += w[i + k];
    for (; i < size; ++i) sums[0] += w[i];
    blocks_.push_back(fold(sums));
    total_ += blocks_.back();
  }
}

Token ScanSums::pick(std::span<const double> weights, double u) const {
  double left = u * total_;
  std::size_t block = 0;
  while (block + 1 < blocks_.size() && left >= blocks_[block]) left -= blocks_[block++];
  std::size_t last_positive = weights.size();
  for (; block < blocks_.size(); ++block) {  // rounding may carry a draw beyond its block's end
    const std::size_t begin = block * kBlock;
    const std::size_t end = std::min(begin + kBlock, weights.size());
    for (std::size_t x = begin; x < end; ++x) {
      if (!(weights[x] > 0.0)) continue;
      last_positive = x;
      if (left < weights[x]) return static_cast<Token>(x);
      left -= weights[x];
    }
  }
  if (last_positive == weights.size()) {  // beyond the end: takes the last token of positive weight
    while (last_positive > 0 && !(weights[last_positive - 1] > 0.0)) --last_positive;
    last_positive = last_positive > 0 ? last_positive - 1 : 0;
  }
  return static_cast<Token>(last_positive);
}

}  // namespace specsim::math
