// A verifier that judges draft tokens one by one, left to right, and stops at the first rejection. It sees only what a server
// has: the distributions at the drafted positions.
#pragma once

#include "sim/foundation/base/token.h"
#include "sim/rounds/verify/accept.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace specsim::verify {

// The distributions at one drafted position; all of the vocabulary's size, each summing to 1.
struct PositionDistributions {
  std::span<const double> target;
  std::span<const double> drafted;      // the draft token's distribution: a point mass if the drafter takes the argmax
  std::span<const double> draft_model;  // the draft model's own distribution, before any argmax
  // The distribution that policies look at if drafted is a point mass: the draft model's at temperature 1, before draft_sampling.
  // Empty: drafted.
  std::span<const double> looked_at = {};
};

class PositionRule {
 public:
  PositionRule() = default;
  PositionRule(const PositionRule&) = delete;
  PositionRule& operator=(const PositionRule&) = delete;
  virtual ~PositionRule() = default;

  // The odds that draft token x is accepted.
  [[nodiscard]] virtual Odds odds(const PositionDistributions& distributions, Token x) const = 0;
  // The same for all tokens.
  virtual void all_odds(const PositionDistributions& distributions, std::span<Odds> of_tokens) const {
    for (std::size_t x = 0; x < of_tokens.size(); ++x) of_tokens[x] = odds(distributions, static_cast<Token>(x));
  }
  // The final token's distribution after a rejection, as weights with any positive sum. May be all zero if a rejection is
  // impossible.
  virtual void rejected(const PositionDistributions& distributions, std::span<double> weights) const = 0;
  // The final token's distribution after full acceptance.
  virtual void bonus(std::span<const double> target, std::span<double> weights) const {
    std::copy(target.begin(), target.end(), weights.begin());
  }
  // True: at every position the rule draws a token from bonus()'s distribution, and keeps the draft token if the two are equal;
  // otherwise the drawn token is the final one. odds() must then give the same probability.
  [[nodiscard]] virtual bool matches() const { return false; }
};

}  // namespace specsim::verify
