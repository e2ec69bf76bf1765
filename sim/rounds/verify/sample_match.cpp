#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

namespace {

class SampleMatchRule final : public PositionRule {
 public:
  [[nodiscard]] Odds odds(const PositionDistributions& distributions, Token x) const override {
    return {distributions.target[x], 1.0};
  }
  void rejected(const PositionDistributions& distributions, std::span<double> weights) const override {
    bonus(distributions.target, weights);  // not drawn again: the target token that did not match is the final one
  }
  [[nodiscard]] bool matches() const override { return true; }
};

}  // namespace

VerifierEntry sample_match_verifier() {
  return {{"sample_match",
           "the target draws its own token at each position, and the draft token is kept if it is the same",
           "Gante, assisted generation, 2023; of trees: Miao et al. (SpecInfer, naive sampling), arXiv 2305.09781",
           {}},
          true,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          [](const config::Arguments&) { return std::make_unique<SampleMatchRule>(); },
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
