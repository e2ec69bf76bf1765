#include "sim/verify/block_rule.h"

#include "sim/rng/address.h"

namespace specsim::verify {

namespace {

class ResidualPick final : public Pickable {
 public:
  ResidualPick(const math::RatioTable& laws, const math::Cut& cut) : laws_(laws), cut_(cut) {}
  [[nodiscard]] Token pick(std::uint64_t word) const override { return laws_.pick(cut_, rng::to_unit(word)); }

 private:
  const math::RatioTable& laws_;
  const math::Cut& cut_;
};

class TargetPick final : public Pickable {
 public:
  explicit TargetPick(const math::RatioTable& laws) : laws_(laws) {}
  [[nodiscard]] Token pick(std::uint64_t word) const override { return laws_.pick_target(word); }

 private:
  const math::RatioTable& laws_;
};

}  // namespace

Token Block::pick_residual(int node, const math::Cut& cut) {
  return cut.c > 0.0 && cut.mass > 0.0 ? pick(node, ResidualPick(laws(node), cut)) : pick_target(node);
}

Token Block::pick_target(int node) { return pick(node, TargetPick(laws(node))); }

Verdict NodeRule::verify(Block& block) const {
  Verdict verdict;
  while (block.children(verdict.node) > 0) {
    const int child = step(block, verdict.node, verdict.final_token);
    if (child == kNone) return verdict;
    verdict.node = child;
  }
  verdict.final_token = block.pick_target(verdict.node);
  return verdict;
}

}  // namespace specsim::verify
