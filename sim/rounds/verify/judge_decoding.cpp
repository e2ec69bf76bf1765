#include "sim/rounds/verify/verifier.h"

#include <algorithm>

namespace specsim::verify {

namespace {

class JudgeRule final : public NodeRule {
 public:
  struct Params {
    double rate = 0.5;
  };
  explicit JudgeRule(const Params& params) : params_(params) {}

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const math::RatioTable& distributions = block.distributions(node);
    const int child = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const Token x = block.token(child);
    const double target = distributions.target(x);
    const double draft = distributions.draft(x);
    if (block.accept(child, {target + params_.rate * std::max(draft - target, 0.0), draft})) return child;
    final_token = block.pick_residual(node, distributions.residual(1.0));
    return kNone;
  }

 private:
  Params params_;
};

}  // namespace

VerifierEntry judge_decoding_verifier() {
  using P = JudgeRule::Params;
  static const config::Fields<P> fields = {
      {"rate", &P::rate,
       "share of the draft tokens rejected by the token verifier that the judge accepts all the same; 0: the token verifier, 1: "
       "every draft token stays",
       config::between(0, 1)},
  };
  return {{"judge_decoding", "a judge accepts some draft tokens that the token verifier would reject",
           "Bachmann et al. (Judge Decoding), arXiv 2501.19309", fields},
          false,
          {},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<JudgeRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
