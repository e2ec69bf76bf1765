#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <cmath>

namespace specsim::verify {

namespace {

class Threshold final : public NodePlan {
 public:
  math::Residual cut;  // c = rho
};

class KSeqRule final : public NodeRule {
 public:
  // rho solves 1 - (1 - beta)^k = rho beta, beta = sum min(draft, target / rho); it lies between 1 and k.
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int children) const override {
    const auto excess = [&](double rho) {
      const double taken = 1.0 - distributions.residual(rho).mass;  // sum min(rho draft, target) = rho beta
      return -std::expm1(children * std::log1p(-std::min(taken / rho, 1.0))) - taken;
    };
    const auto is_below = [&](double rho) { return excess(rho) > 0.0; };
    auto plan = std::make_unique<Threshold>();
    plan->cut = distributions.residual(bisect(1.0, children, is_below, kToTheLastBit).high);
    return plan;
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t /*vocab*/, int /*children*/) const override {
    return sizeof(Threshold) + kHeapBytes;
  }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const math::RatioTable& distributions = block.distributions(node);
    const math::Residual& cut = static_cast<const Threshold*>(block.plan(node))->cut;
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    for (int child = first; child < first + block.children(node); ++child) {
      const Token x = block.token(child);
      if (block.accept(child, {distributions.target(x), cut.c * distributions.draft(x)})) return child;
    }
    final_token = block.pick_residual(node, cut);
    return kNone;
  }
};

}  // namespace

VerifierEntry kseq_verifier() {
  return {{"kseq",
           "K-SEQ (SpecTr) judges every sibling against the target divided by one factor",
           "Sun et al. (SpecTr), arXiv 2310.15141",
           {}},
          true,
          {.trees = {tokens::Siblings::independent}},
          {},
          [](const config::Arguments&) { return std::make_unique<KSeqRule>(); }};
}

}  // namespace specsim::verify
