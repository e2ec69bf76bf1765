// A draw from the rest of a distribution, by running sums over the tokens.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/rounds/verify/choices.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace specsim::verify {

// sums: [token], running sums of weights that are not negative; the last is positive. Must outlive it.
class RunningSumsPick final : public Pickable {
 public:
  explicit RunningSumsPick(std::span<const double> sums) : sums_(sums) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), rng::to_unit(bits) * sums_.back());
    if (found != sums_.end()) return static_cast<Token>(found - sums_.begin());
    return static_cast<Token>(std::lower_bound(sums_.begin(), sums_.end(), sums_.back()) - sums_.begin());
  }

 private:
  std::span<const double> sums_;
};

}  // namespace specsim::verify
