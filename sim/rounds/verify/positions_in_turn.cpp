#include "sim/rounds/verify/positions_in_turn.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/rng/address.h"

#include <vector>

namespace specsim::verify {

namespace {

// Weights of a vocabulary and their sums; the memory is reused in all rounds of a thread.
struct Scan {
  std::vector<double> weights;
  math::ScanSums sums;

  void take_bonus(const PositionRule& rule, std::span<const double> target) {
    weights.resize(target.size());
    rule.bonus(target, weights);
    sums.sum(weights);
  }
  void take_rejected(const PositionRule& rule, const PositionDistributions& distributions) {
    weights.resize(distributions.target.size());
    rule.rejected(distributions, weights);
    sums.sum(weights);
    // Distributions that are equal but for rounding may reject with probability 1e-16 and leave no residual. The target's
    // distribution is used then.
    if (!(sums.total() > 0.0)) take_bonus(rule, distributions.target);
  }
};

}  // namespace

Token ScannedPick::pick(std::uint64_t bits) const { return sums_.pick(weights_, rng::to_unit(bits)); }

AcceptedPath PositionsInTurn::verify(Block& block) const {
  thread_local Scan scan;
  const std::vector<tokens::Tree::Node>& nodes = block.tree().nodes;
  SPECSIM_CHECK(block.tree().is_chain(), "a tree for a rule that judges positions");
  constexpr int kRoot = 0;
  int node = kRoot;
  while (nodes[static_cast<std::size_t>(node)].children > 0) {
    const int child = node + 1;
    const Token drafted = block.token(child);
    const PositionDistributions distributions = block.numbers(node);
    Token emitted = drafted;
    bool accepted = false;
    if (rule_->matches()) {
      scan.take_bonus(*rule_, distributions.target);
      emitted = block.choose(node, ScannedPick(scan.sums, scan.weights));
      accepted = emitted == drafted;
    } else {
      accepted = block.accept(child, rule_->odds(distributions, drafted));
      if (!accepted) {
        scan.take_rejected(*rule_, distributions);
        emitted = block.pick(kRoot, ScannedPick(scan.sums, scan.weights));
      }
    }
    block.judged(child, distributions, accepted, emitted);
    if (!accepted) return {node, emitted};
    node = child;
  }
  if (bonus_ == Bonus::none) return {node, 0};
  scan.take_bonus(*rule_, block.numbers(node).target);
  return {node, block.pick(kRoot, ScannedPick(scan.sums, scan.weights))};
}

}  // namespace specsim::verify
