// Judges chains position by position, as blocks, for distributions that are used once: in simulations where every text position
// has its own, and in real models. Draws scan a distribution, because a table would take longer to build than it saves.
#pragma once

#include "sim/foundation/math/scan.h"
#include "sim/rounds/verify/block_rule.h"
#include "sim/rounds/verify/position_rule.h"

#include <cstdint>
#include <memory>
#include <span>

namespace specsim::verify {

// A draw from `weights`, whose running sums are `sums`; both must outlive it.
class ScannedPick final : public Pickable {
 public:
  ScannedPick(const math::ScanSums& sums, std::span<const double> weights) : sums_(sums), weights_(weights) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override;

 private:
  const math::ScanSums& sums_;
  std::span<const double> weights_;
};

// The block must be a chain whose Block::numbers() is available; draft tokens after the first rejection are not asked for. A
// round has one final token, drawn with the root's random bits wherever the round ends, because the staged loop too has one
// address for it.
class PositionsInTurn final : public BlockRule {
 public:
  // The end of a round after full acceptance: one more target token, or nothing (final_token is then 0).
  enum class Bonus : bool { none, emitted };

  // `rule` must outlive it.
  explicit PositionsInTurn(const PositionRule& rule, Bonus bonus = Bonus::emitted) : rule_(&rule), bonus_(bonus) {}
  explicit PositionsInTurn(std::unique_ptr<const PositionRule> rule) : owned_(std::move(rule)), rule_(owned_.get()) {}
  AcceptedPath verify(Block& block) const override;
  [[nodiscard]] const PositionRule* each_position() const override { return rule_; }

 private:
  std::unique_ptr<const PositionRule> owned_;
  const PositionRule* rule_;
  Bonus bonus_ = Bonus::emitted;
};

}  // namespace specsim::verify
