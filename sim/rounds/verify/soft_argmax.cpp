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
  return {{"soft_argmax",
           "a published mistake: an argmax draft token is judged with the draft's soft probability",
           "widely copied pseudocode; kept to show its bias",
           {}},
          false,
          {.one_hot_target = false, .argmax_draft = true},
          [](const config::Arguments&) { return std::make_unique<SoftArgmaxRule>(); },
          {}};
}

}  // namespace specsim::verify
