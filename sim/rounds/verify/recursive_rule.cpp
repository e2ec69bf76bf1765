#include "sim/rounds/verify/recursive_rule.h"

#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/rng/address.h"

#include <vector>

namespace specsim::verify {

namespace {

// cuts[j]: the residual after j rejections of siblings drawn with replacement; c grows by the rejected mass each time.
class Residuals final : public NodePlan {
 public:
  std::vector<math::Residual> cuts;
};

Odds odds(const math::RatioTable& distributions, Token x, const math::Residual& cut, double remaining) {
  return {(distributions.target(x) - cut.c * distributions.draft(x)) * remaining, cut.mass * distributions.draft(x)};
}

}  // namespace

std::unique_ptr<NodePlan> RecursiveRule::plan(const math::RatioTable& distributions, int children) const {
  auto plan = std::make_unique<Residuals>();
  plan->cuts.reserve(static_cast<std::size_t>(children) + 1);
  plan->cuts.push_back({0.0, 1.0, 0});
  for (int i = 0; i < children; ++i) plan->cuts.push_back(distributions.residual(plan->cuts.back().c + plan->cuts.back().mass));
  return plan;
}

std::size_t RecursiveRule::plan_bytes(std::size_t /*vocab*/, int children) const {
  return sizeof(Residuals) + (static_cast<std::size_t>(children) + 1) * sizeof(math::Residual) + 2 * kHeapBytes;
}

void RecursiveRule::judge_lanes(const SiblingLanes& siblings, std::uint32_t* accepted) const {
  const math::RatioTable& distributions = *siblings.distributions;
  const auto& cuts = static_cast<const Residuals*>(siblings.plan)->cuts;
  const math::Residual& planned = cuts[siblings.earlier_siblings + 1];
  if (siblings.remaining == nullptr) {
    const math::Residual cut = cuts[siblings.earlier_siblings];
    for (std::uint32_t i = 0; i < siblings.count; ++i) {
      const Token x = siblings.tokens[i];
      accepted[i] = accepts(rng::to_unit(siblings.random_bits[i]), odds(distributions, x, cut, 1.0)) ? 1 : 0;
      siblings.residual[siblings.lanes[i]] = planned;
    }
    return;
  }
  for (std::uint32_t i = 0; i < siblings.count; ++i) {
    math::Residual& cut = siblings.residual[siblings.lanes[i]];
    const double remaining = siblings.remaining[i];
    accepted[i] = accepts(rng::to_unit(siblings.random_bits[i]), odds(distributions, siblings.tokens[i], cut, remaining)) ? 1 : 0;
    cut.c += cut.mass / remaining;
  }
  for (std::uint32_t i = 0; i < siblings.count; ++i) {
    math::Residual& cut = siblings.residual[siblings.lanes[i]];
    if (accepted[i] == 0) cut = cut.c == planned.c ? planned : distributions.residual(cut.c);
  }
}

int RecursiveRule::step(Block& block, int node, Token& final_token) const {
  const math::RatioTable& distributions = block.distributions(node);
  const auto& cuts = static_cast<const Residuals*>(block.plan(node))->cuts;
  const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
  const int children = block.children(node);
  const bool shrinks = block.siblings() == tokens::Siblings::without_replacement;
  math::Residual cut = cuts[0];
  for (int i = 0; i < children; ++i) {
    const Token x = block.token(first + i);
    const double remaining = shrinks ? block.remaining(first + i) : 1.0;
    if (block.accept(first + i, odds(distributions, x, cut, remaining))) return first + i;
    const double c = cut.c + cut.mass / remaining;
    const math::Residual& planned = cuts[static_cast<std::size_t>(i) + 1];
    cut = c == planned.c ? planned : distributions.residual(c);
  }
  final_token = block.pick_residual(node, cut);
  return kNone;
}

}  // namespace specsim::verify
