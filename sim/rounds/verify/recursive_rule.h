// Recursive rejection sampling over siblings, shared by the verifiers that use it.
#pragma once

#include "sim/rounds/verify/block_rule.h"

namespace specsim::verify {

// Siblings in turn, each against what the target's distribution has left: accept x with min(1, residual(x) / draft(x)); on a
// rejection the residual becomes (residual - draft)+, normalised. Both distributions may lose tokens on the way: without
// replacement the draft's distribution loses the siblings drawn before, which the residual has lost already, since a token is
// rejected only where draft exceeds residual. So after every rejection residual = (target - c draft)+ / Z, with c growing by Z /
// (the draft's remaining mass).
class RecursiveRule : public SiblingRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int children) const override;
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int children) const override;
  void judge_lanes(const SiblingLanes& siblings, std::uint32_t* accepted) const override;

 protected:
  int step(Block& block, int node, Token& final_token) const override;
};

}  // namespace specsim::verify
