#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/running_sums.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace specsim::verify {

namespace {

// Draft and target pick their tokens by the same exponential clocks, argmin E(x) / draft(x) and argmin E(x) / target(x). The plan
// holds the probability that both pick a token, and the target's pick if they differ.
class CommonClocks final : public NodePlan {
 public:
  explicit CommonClocks(const math::RatioTable& distributions) : both_(distributions.vocab()), rest_(distributions.vocab()) {
    std::vector<Token> order(distributions.vocab());
    std::iota(order.begin(), order.end(), Token{0});
    const auto p = [&](Token x) { return distributions.target(x); };
    const auto q = [&](Token x) { return distributions.draft(x); };
    const auto ratio = [&](Token x) {
      if (!(p(x) > 0.0)) return -1.0;
      return q(x) > 0.0 ? p(x) / q(x) : std::numeric_limits<double>::infinity();
    };
    std::sort(order.begin(), order.end(), [&](Token a, Token b) { return ratio(a) > ratio(b); });
    // P(both pick x) = 1 / sum over y of max(target(y) / target(x), draft(y) / draft(x)). The first term is the larger one for
    // tokens whose ratio of target to draft is at least that of x. Running sums from either end have no cancellation.
    std::vector<double> draft_from(order.size() + 1, 0.0);
    for (std::size_t i = order.size(); i-- > 0;) draft_from[i] = draft_from[i + 1] + q(order[i]);
    double target_before = 0.0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Token x = order[i];
      target_before += p(x);
      if (!(p(x) > 0.0) || !(q(x) > 0.0)) continue;
      const double pace = target_before / p(x) + draft_from[i + 1] / q(x);
      both_[x] = std::min({1.0 / pace, p(x), q(x)});
    }
    double sum = 0.0;
    for (std::size_t x = 0; x < rest_.size(); ++x) {
      sum += p(static_cast<Token>(x)) - both_[x];
      rest_[x] = sum;
    }
  }
  static std::size_t bytes(std::size_t vocab) { return sizeof(CommonClocks) + 2 * vocab * sizeof(double) + 3 * kHeapBytes; }
  [[nodiscard]] double both(Token x) const { return both_[x]; }
  [[nodiscard]] double left() const { return rest_.back(); }
  [[nodiscard]] std::span<const double> rest() const { return rest_; }

 private:
  std::vector<double> both_;  // [token]
  std::vector<double> rest_;  // [token]: running sums of the target's pick if the two differ
};

class GumbelRule final : public NodeRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    return std::make_unique<CommonClocks>(distributions);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return CommonClocks::bytes(vocab); }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const auto& clocks = static_cast<const CommonClocks&>(*block.plan(node));
    const int child = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const Token x = block.token(child);
    if (block.accept(child, {clocks.both(x), block.distributions(node).draft(x)})) return child;
    final_token = clocks.left() > 0.0 ? block.pick(node, RunningSumsPick(clocks.rest())) : block.pick_target(node);
    return kNone;
  }
};

}  // namespace

VerifierEntry gumbel_verifier() {
  return {{"gumbel",
           "draft and target sample with the same random noise, and a draft token is kept if both agree",
           "Daliri, Musco, Suresh (drafter-invariant speculative decoding), arXiv 2408.07978",
           {}},
          true,
          {},
          {},
          [](const config::Arguments&) { return std::make_unique<GumbelRule>(); }};
}

}  // namespace specsim::verify
