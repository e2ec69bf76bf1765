#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

namespace {

// The target is one-hot (Demands), so its argmax is the token that has the mass.
class GreedyRule final : public PositionRule {
 public:
  [[nodiscard]] Odds odds(const PositionDistributions& distributions, Token x) const override {
    return {distributions.target[x] > 0.5 ? 1.0 : 0.0, 1.0};
  }
  void rejected(const PositionDistributions& distributions, std::span<double> weights) const override {
    bonus(distributions.target, weights);
  }
};

}  // namespace

VerifierEntry greedy_verifier() {
  return {{"greedy", "accepts a draft token while it is the target's argmax", "Stern et al., arXiv 1811.03115", {}},
          true,
          {.one_hot_target = true, .argmax_draft = false},
          [](const config::Arguments&) { return std::make_unique<GreedyRule>(); },
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
