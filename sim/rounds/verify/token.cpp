#include "sim/rounds/verify/recursive_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

namespace {

class TokenRule final : public PositionRule {
 public:
  [[nodiscard]] Odds odds(const PositionDistributions& distributions, Token x) const override {
    return {distributions.target[x], distributions.drafted[x]};
  }
  void rejected(const PositionDistributions& distributions, std::span<double> weights) const override {
    for (std::size_t x = 0; x < weights.size(); ++x)
      weights[x] = std::max(distributions.target[x] - distributions.drafted[x], 0.0);
  }
};

}  // namespace

VerifierEntry token_verifier() {
  return {
      {"token",
       "the standard rule: accept each draft token with min(1, target/draft), and after a rejection draw from what the target "
       "has left",
       "Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318",
       {}},
      true,
      {},
      [](const config::Arguments&) { return std::make_unique<TokenRule>(); },
      [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
      true,   // the default for chains
      true};  // and on a GPU
}

}  // namespace specsim::verify
