#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

namespace {

class LenientRule final : public NodeRule {
 public:
  struct Params {
    double lenience = 0.5;
  };
  explicit LenientRule(const Params& params) : params_(params) {}

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const math::RatioTable& distributions = block.distributions(node);
    const int child = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const Token x = block.token(child);
    if (block.accept(child, {distributions.target(x), params_.lenience * distributions.draft(x)})) return child;
    final_token = block.pick_residual(node, distributions.residual(1.0));
    return kNone;
  }

 private:
  Params params_;
};

}  // namespace

VerifierEntry lenience_verifier() {
  using P = LenientRule::Params;
  static const config::Fields<P> fields = {
      {"lenience", &P::lenience, "factor on the draft's probability; 1: the token verifier", config::above(0, 1)}};
  return {{"lenience", "the token verifier with a reduced draft probability, so that more tokens are accepted",
           "Leviathan et al., arXiv 2211.17192, appendix A.5", fields},
          false,
          {},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<LenientRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
