#include "sim/rounds/verify/block_rule.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/rng/address.h"

namespace specsim::verify {

namespace {

class ResidualPick final : public Pickable {
 public:
  ResidualPick(const math::RatioTable& distributions, const math::Residual& cut) : distributions_(distributions), cut_(cut) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override { return distributions_.pick(cut_, rng::to_unit(bits)); }

 private:
  const math::RatioTable& distributions_;
  const math::Residual& cut_;
};

class TargetPick final : public Pickable {
 public:
  explicit TargetPick(const math::RatioTable& distributions) : distributions_(distributions) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override { return distributions_.pick_target(bits); }

 private:
  const math::RatioTable& distributions_;
};

}  // namespace

PositionDistributions Block::numbers(int node) {
  SPECSIM_CHECK(false, "node {} of a block of tables was asked for its numbers", node);
  return {};
}

Token Block::pick_residual(int node, const math::Residual& cut) {
  return cut.c > 0.0 && cut.mass > 0.0 ? pick(node, ResidualPick(distributions(node), cut)) : pick_target(node);
}

Token Block::pick_target(int node) { return pick(node, TargetPick(distributions(node))); }

AcceptedPath NodeRule::verify(Block& block) const {
  AcceptedPath verdict;
  while (block.children(verdict.node) > 0) {
    const int child = step(block, verdict.node, verdict.final_token);
    if (child == kNone) return verdict;
    verdict.node = child;
  }
  verdict.final_token = block.pick_target(verdict.node);
  return verdict;
}

}  // namespace specsim::verify
