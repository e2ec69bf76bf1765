#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/math/simplex.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <vector>

namespace specsim::verify {

namespace {

class TopTokens final : public NodePlan {
 public:
  std::vector<Token> tokens;
};

class TopMatchRule final : public NodeRule {
 public:
  struct Params {
    int k = 3;
  };
  explicit TopMatchRule(const Params& params) : params_(params) {}

  // Ties: the lower token ranks first.
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    auto plan = std::make_unique<TopTokens>();
    std::vector<double> target(distributions.vocab());
    for (Token x = 0; x < target.size(); ++x) target[x] = distributions.target(x);
    plan->tokens = math::likeliest(target, static_cast<std::size_t>(params_.k));
    return plan;
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override {
    return sizeof(TopTokens) + std::min(static_cast<std::size_t>(params_.k), vocab) * sizeof(Token) + 2 * kHeapBytes;
  }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const std::vector<Token>& top = static_cast<const TopTokens*>(block.plan(node))->tokens;
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    for (int child = first; child < first + block.children(node); ++child)
      if (std::find(top.begin(), top.end(), block.token(child)) != top.end()) return child;
    final_token = block.pick_target(node);
    return kNone;
  }

 private:
  Params params_;
};

}  // namespace

VerifierEntry top_k_match_verifier() {
  using P = TopMatchRule::Params;
  static const config::Fields<P> fields = {
      {"k", &P::k, "tokens of the target that count as a match", config::between(1, kMaxVocab)},
  };
  return {{"top_k_match", "accepts a draft token if it is among the target's k likeliest",
           "a widely used shortcut; Stern et al., arXiv 1811.03115, section 5.1 (top-k selection)", fields},
          false,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<TopMatchRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
