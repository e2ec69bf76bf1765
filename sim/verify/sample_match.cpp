#include "sim/verify/matching_rule.h"
#include "sim/verify/verifier.h"

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
  return {
      {"sample_match",
       "the target samples at each position; the draft token is kept while the two are equal",
       "Gante, assisted generation, 2023",
       {},
       "Lossless at any temperature, for every emitted token is the target's own sample. alpha = sum target * draft, which is "
       "at most the token verifier's sum min(target, draft)."},
      true,
      {},
      [](const config::Arguments&) { return std::make_unique<SampleMatchRule>(); },
      [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
