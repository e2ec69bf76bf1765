// The comparison that decides on a draft token, and its prepared form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace specsim::verify {

// A rule's verdict on one draft token: it is accepted with probability min(1, target / draft).
struct Odds {
  double target = 0.0;
  double draft = 1.0;
};

// u in [0, 1). The comparison is strict and multiplies. So equal odds always accept (unless they are subnormal numbers, whose
// products with u are rounded up), a target of 0 never accepts (not even at u = 0), and nothing is divided by zero.
inline bool accepts(double u, Odds odds) { return u * odds.draft < odds.target; }

constexpr std::uint64_t kAcceptAlways = std::uint64_t{1} << 53;
constexpr std::uint64_t kNearby = 2;  // largest distance of the rounded quotient of two odds from the exact threshold

// The number of u = 0, 2^-53, 2 2^-53, ... below 1 for which accepts() is true. Comparing the high 53 bits of a random number
// with it decides exactly as accepts() does. As u grows, accepts() changes at most once, from true to false.
inline std::uint64_t accept_threshold(Odds odds) {
  if (!(odds.target > 0.0)) return 0;
  if (odds.target > odds.draft) return kAcceptAlways;
  const auto passes = [&](std::uint64_t m) { return accepts(static_cast<double>(m) * 0x1.0p-53, odds); };
  // Rounding puts the quotient off by one or two, unless the products in accepts() are subnormal numbers with few digits. In that
  // case the threshold is found by bisection.
  const auto guess = std::min(static_cast<std::uint64_t>(std::ceil(odds.target / odds.draft * 0x1.0p53)), kAcceptAlways);
  std::uint64_t low = guess > kNearby ? guess - kNearby : 0;
  std::uint64_t high = std::min(guess + kNearby, kAcceptAlways);
  if (low > 0 && !passes(low - 1)) low = 0;
  if (high < kAcceptAlways && passes(high)) high = kAcceptAlways;
  while (low < high) {  // accepts() is true below `low`, and false from `high` on
    const std::uint64_t middle = low + (high - low) / 2;
    if (passes(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace specsim::verify
