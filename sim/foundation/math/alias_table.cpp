#include "sim/foundation/math/alias_table.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <cmath>

namespace specsim::math {

namespace {

constexpr double kOne = 0x1.0p46;

std::uint64_t pack(double own_share, std::uint32_t alias) {
  const double threshold = std::clamp(std::nearbyint(own_share * kOne), 0.0, kOne - 1.0);
  return static_cast<std::uint64_t>(threshold) << 18 | alias;
}

}  // namespace

void build_alias(std::span<const double> weights, std::uint64_t* entries, AliasScratch& scratch) {
  const std::size_t size = weights.size();
  SPECSIM_CHECK(size >= 1 && size <= static_cast<std::size_t>(kMaxVocab), "size = {}", size);
  double total = 0.0;
  for (const double weight : weights) total += weight;
  if (!(total > 0.0)) {
    std::fill_n(entries, size, std::uint64_t{0});
    return;
  }
  scratch.scaled.resize(size);
  scratch.small.clear();
  scratch.large.clear();
  const double scale = static_cast<double>(size) / total;
  for (std::size_t i = 0; i < size; ++i) {
    scratch.scaled[i] = weights[i] * scale;
    (scratch.scaled[i] < 1.0 ? scratch.small : scratch.large).push_back(static_cast<std::uint32_t>(i));
  }
  while (!scratch.small.empty() && !scratch.large.empty()) {
    const std::uint32_t poor = scratch.small.back();
    const std::uint32_t rich = scratch.large.back();
    scratch.small.pop_back();
    entries[poor] = pack(scratch.scaled[poor], rich);
    scratch.scaled[rich] -= 1.0 - scratch.scaled[poor];
    if (scratch.scaled[rich] < 1.0) {
      scratch.large.pop_back();
      scratch.small.push_back(rich);
    }
  }
  // The remaining columns are 1 but for rounding: each is its own alias. A token of weight zero must not be drawn even then, so
  // its alias is the likeliest token.
  const auto likeliest = static_cast<std::uint32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  for (const std::uint32_t left : scratch.large) entries[left] = pack(1.0, left);
  for (const std::uint32_t left : scratch.small) entries[left] = weights[left] > 0.0 ? pack(1.0, left) : pack(0.0, likeliest);
}

AliasTable::AliasTable(std::span<const double> weights) : entries_(weights.size()) {
  AliasScratch scratch;
  build_alias(weights, entries_.data(), scratch);
}

}  // namespace specsim::math
