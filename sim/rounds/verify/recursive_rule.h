// Recursive rejection sampling over siblings, shared by the verifiers that use it.
#pragma once

#include "sim/rounds/verify/block_rule.h"

namespace specsim::verify {

// Judges siblings in turn, each against the rest of the target's distribution: accepts x with min(1, residual(x) / draft(x)).
// After a rejection the residual becomes (residual - draft)+, normalised. Without replacement the draft's distribution loses the
// siblings drawn before. The residual has lost these already, since a token is rejected only if draft exceeds residual. So after
// every rejection residual = (target - c draft)+ / Z, and c grows by Z / (the draft's remaining mass).
class RecursiveRule : public SiblingRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int children) const override;
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int children) const override;
  void judge_lanes(const SiblingLanes& siblings, std::uint32_t* accepted) const override;

 protected:
  int step(Block& block, int node, Token& final_token) const override;
};

}  // namespace specsim::verify
