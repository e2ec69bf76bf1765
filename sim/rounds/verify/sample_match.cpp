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
    bonus(distributions.target, weights);  // not drawn again: the token that failed to match is the final one
  }
  [[nodiscard]] bool matches() const override { return true; }
};

}  // namespace

VerifierEntry sample_match_verifier() {
  return {{"sample_match",
           "the target samples at each position; the draft token is kept while the two are equal",
           "Gante, assisted generation, 2023; of trees: Miao et al. (SpecInfer, naive sampling), arXiv 2305.09781",
           {},
           "Lossless at any temperature, for every emitted token is the target's own sample. alpha = sum target * draft, which "
           "is at most the token verifier's sum min(target, draft). On a tree the walk goes on to the child that has the "
           "target's sample, the first of equal ones: SpecInfer's naive sampling. "
           "It pays where the draft's probabilities are not at hand, and at temperature 0, where no lossless "
           "rule accepts more. It does not above: simulated, 1.79 tokens a round against the token verifier's "
           "2.61 (configs/examples/methods/paths.yaml); an MTP module's tokens were accepted at about 5 % by it "
           "and at 90 % by the token verifier at temperature .6 (mlx-lm pull request 1085, Qwen3.5-122B)."},
          true,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          [](const config::Arguments&) { return std::make_unique<SampleMatchRule>(); },
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
