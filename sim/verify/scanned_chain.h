// A round over a chain whose distributions are used once: in simulations where every text position has distributions of its
// own, and with real models. Draws scan a distribution, since a table of it would cost more than it saves.
#pragma once

#include "sim/math/scan.h"
#include "sim/verify/choices.h"
#include "sim/verify/position_rule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace specsim::verify {

// A draw from `weights`, of which `sums` were made; both must outlive it.
class ScannedPick final : public Pickable {
 public:
  ScannedPick(const math::ScanSums& sums, std::span<const double> weights) : sums_(sums), weights_(weights) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override;

 private:
  const math::ScanSums& sums_;
  std::span<const double> weights_;
};

// A round's draft tokens, one position after the other. Nothing behind the first rejection is asked for.
class ChainDrafts {
 public:
  struct Position {
    PositionDistributions distributions;
    Token token = 0;
  };

  ChainDrafts() = default;
  ChainDrafts(const ChainDrafts&) = delete;
  ChainDrafts& operator=(const ChainDrafts&) = delete;
  virtual ~ChainDrafts() = default;
  [[nodiscard]] virtual int length() const = 0;
  virtual Position draft(int position, ChoiceSource& choices) = 0;
  // The target's distribution behind all of them.
  virtual std::span<const double> target_at_end() = 0;
  // Told of each verdict, and of the token after full acceptance, while the distributions are at hand.
  virtual void judged(int /*position*/, const Position& /*drafted*/, bool /*accepted*/, Token /*emitted*/) {}
  virtual void bonus(Token /*emitted*/) {}
};

class ScannedChain {
 public:
  struct Outcome {
    std::vector<Token> emitted;  // the accepted draft tokens, and the final one if there is any
    int accepted = 0;
    bool whole = false;  // every draft token was accepted
  };
  // Plays one round by `rule`; `with_bonus`: full acceptance adds a token of the target's. The outcome is valid until the next
  // round.
  const Outcome& play(const PositionRule& rule, ChainDrafts& drafts, ChoiceSource& choices, bool with_bonus = true);

 private:
  Token pick_bonus(const PositionRule& rule, std::span<const double> target, ChoiceSource::Use use, int node, int depth,
                   ChoiceSource& choices);

  Outcome outcome_;
  std::vector<double> weights_;
  math::ScanSums sums_;
};

}  // namespace specsim::verify
