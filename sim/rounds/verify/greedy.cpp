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
  return {{"greedy",
           "accept while the draft token is the target's argmax",
           "Stern et al., arXiv 1811.03115",
           {},
           "Lossless for a target at temperature 0, and refused for any other. Ties go to the lowest token. alpha = 1 where an "
           "argmax draft agrees, else 0; for a sampled draft, draft(argmax target). "
           "It pays where the target runs at temperature 0, as no lossless rule accepts more there: a draft "
           "model made Vicuna-7B 1.76 times as fast at 0, 1.52 times at 1 (EAGLE-2's authors, batch 1). It does "
           "not apply elsewhere."},
          true,
          {.one_hot_target = true, .argmax_draft = false},
          [](const config::Arguments&) { return std::make_unique<GreedyRule>(); },
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
