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
  return {
      {"lenience", "the token verifier with a draft probability that counts less",
       "Leviathan et al., arXiv 2211.17192, appendix A.5", fields,
       "Not lossless. The paper multiplies the draft's probability by it before algorithm 1 compares, and changes nothing else: "
       "a draft token x is accepted with min(1, target(x)/(lenience draft(x))), in sum min(target/lenience, draft), and a "
       "rejection resamples from algorithm 1's max(target - draft, 0). No token is emitted with more than target(x)/lenience. "
       "It pays where a bounded error is allowed: simulated with .5, 2.87 tokens a round against the token "
       "verifier's 2.30 (configs/examples/methods/lossy.yaml). The paper's own figures could not be read "
       "here, and no measurement of quality is known. At temperature 0 it gains nothing, for the target's "
       "one token is all that can stay."},
      false,
      {},
      {},
      [](const config::Arguments& arguments) { return std::make_unique<LenientRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
