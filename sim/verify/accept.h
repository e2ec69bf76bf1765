// The one comparison that decides on a draft token, and its prepared form.
#pragma once

#include <cmath>
#include <cstdint>

namespace specsim::verify {

// What a rule says of one draft token: it is accepted with probability min(1, target / draft).
struct Odds {
  double target = 0.0;
  double draft = 1.0;
};

// u in [0, 1). Strict and multiplied: equal odds always accept, target 0 never does (not even at u = 0), and nothing is
// divided by zero.
inline bool accepts(double u, Odds odds) { return u * odds.draft < odds.target; }

constexpr std::uint64_t kAcceptAlways = std::uint64_t{1} << 53;

// The number of u = 0, 2^-53, 2 2^-53, ... below 1 that accepts() lets pass: comparing the high 53 bits of a word with it
// decides exactly as accepts() does.
inline std::uint64_t accept_threshold(Odds odds) {
  if (!(odds.target > 0.0)) return 0;
  if (odds.target >= odds.draft) return kAcceptAlways;
  const auto passes = [&](std::uint64_t m) { return accepts(static_cast<double>(m) * 0x1.0p-53, odds); };
  auto threshold = static_cast<std::uint64_t>(std::ceil(odds.target / odds.draft * 0x1.0p53));
  if (threshold > kAcceptAlways) threshold = kAcceptAlways;
  while (threshold > 0 && !passes(threshold - 1)) --threshold;  // the quotient's rounding is off by one or two at most
  while (threshold < kAcceptAlways && passes(threshold)) ++threshold;
  return threshold;
}

}  // namespace specsim::verify
