#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

namespace {

class SoftArgmaxRule final : public PositionRule {
 public:
  [[nodiscard]] Odds odds(const PositionDistributions& distributions, Token x) const override {
    return {distributions.target[x], distributions.draft_model[x]};
  }
  void rejected(const PositionDistributions& distributions, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = std::max(distributions.target[x] - distributions.draft_model[x], 0.0);
  }
};

}  // namespace

VerifierEntry soft_argmax_verifier() {
  return {
      {"soft_argmax",
       "a published mistake: an argmax draft judged with the draft model's soft probability",
       "pseudocode in circulation; kept to show its bias",
       {},
       "Not lossless. The draft token is the draft model's argmax m, yet it is accepted with min(1, target(m)/draft(m)) and a "
       "rejection resamples from max(target - draft, 0). Where target(m) >= draft(m) it is always emitted; elsewhere it is "
       "emitted with probability "
       "target(m)/draft(m) instead of target(m). Exact for a draft token that is sampled; needs drafter.selection: argmax. "
       "It never pays: the text is wrong (simulated, the known pair's first token with .62 in place of .40: "
       "docs/results/claims.md, G1), and a point mass judged as such costs nothing more."},
      false,
      {.one_hot_target = false, .argmax_draft = true},
      [](const config::Arguments&) { return std::make_unique<SoftArgmaxRule>(); },
      {}};
}

}  // namespace specsim::verify
