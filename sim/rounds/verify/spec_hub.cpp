#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/running_sums.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <span>
#include <vector>

namespace specsim::verify {

namespace {

// The rest of the target after pairs of siblings around the draft's likeliest token, the hub: (x, hub) is drawn with draft(x),
// (hub, x) with draft(hub) draft(x) / (1 - draft(hub)).
class HubPlan final : public NodePlan {
 public:
  HubPlan(const math::RatioTable& distributions, int children)
      : after_first_(distributions.vocab()), rest_(distributions.vocab()) {
    for (std::size_t i = 1; i < rest_.size(); ++i)
      if (distributions.draft(static_cast<Token>(i)) > distributions.draft(hub_)) hub_ = static_cast<Token>(i);
    double others = 0.0;
    for (std::size_t i = 0; i < rest_.size(); ++i)
      if (i != hub_) others += distributions.draft(static_cast<Token>(i));
    second_share_ = children > 1 && others > 0.0 ? distributions.draft(hub_) / others : 0.0;
    double rejected_hub_first = 0.0;
    double rejected_hub_second = 0.0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const auto x = static_cast<Token>(i);
      const double p = distributions.target(x);
      const double q = distributions.draft(x);
      if (x == hub_) continue;
      after_first_[i] = std::max(p - q, 0.0);
      rest_[i] = std::max(after_first_[i] - second_share_ * q, 0.0);
      rejected_hub_second += std::max(q - p, 0.0);
      rejected_hub_first += std::max(second_share_ * q - after_first_[i], 0.0);
    }
    if (children == 1) {  // standard rejection sampling of one token
      rejected_hub_first = distributions.draft(hub_);
      rejected_hub_second = 0.0;
    }
    hub_first_ = rejected_hub_first;
    hub_second_ = rejected_hub_second;
    const double hub_left = std::max(distributions.target(hub_) - hub_first_, 0.0);
    after_first_[hub_] = hub_left;
    rest_[hub_] = std::max(hub_left - hub_second_, 0.0);
    double sum = 0.0;
    for (double& weight : rest_) weight = sum += weight;
  }
  static std::size_t bytes(std::size_t vocab) { return sizeof(HubPlan) + 2 * vocab * sizeof(double) + 3 * kHeapBytes; }

  [[nodiscard]] Token hub() const { return hub_; }
  [[nodiscard]] double second_share() const { return second_share_; }  // P(hub, x) / draft(x)
  [[nodiscard]] double hub_first() const { return hub_first_; }    // P(the hub is drawn first, and the other token is rejected)
  [[nodiscard]] double hub_second() const { return hub_second_; }  // P(the hub is drawn second, and the first token is rejected)
  // The rest of the target's probability of x after the first token was judged.
  [[nodiscard]] double after_first(Token x) const { return after_first_[x]; }
  [[nodiscard]] double left() const { return rest_.back(); }
  [[nodiscard]] std::span<const double> rest() const { return rest_; }

 private:
  Token hub_ = 0;
  double second_share_ = 0.0;
  double hub_first_ = 0.0;
  double hub_second_ = 0.0;
  std::vector<double> after_first_;
  std::vector<double> rest_;  // running sums of the mass that no sibling takes
};

class SpecHubRule final : public NodeRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int children) const override {
    return std::make_unique<HubPlan>(distributions, children);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return HubPlan::bytes(vocab); }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const math::RatioTable& distributions = block.distributions(node);
    const auto& plan = static_cast<const HubPlan&>(*block.plan(node));
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const bool pair = block.children(node) > 1;
    const Token x = block.token(first);
    if (x != plan.hub()) {  // (x, hub)
      if (block.accept(first, {distributions.target(x), distributions.draft(x)})) return first;
      if (pair && block.accept(first + 1, {plan.after_first(plan.hub()), plan.hub_second()})) return first + 1;
    } else {  // (hub, y)
      if (pair) {
        const Token y = block.token(first + 1);
        if (block.accept(first + 1, {plan.after_first(y), plan.second_share() * distributions.draft(y)})) return first + 1;
      }
      if (block.accept(first, {distributions.target(x), plan.hub_first()})) return first;
    }
    final_token = plan.left() > 0.0 ? block.pick(node, RunningSumsPick(plan.rest())) : block.pick_target(node);
    return kNone;
  }
};

}  // namespace

VerifierEntry spec_hub_verifier() {
  return {{"spec_hub",
           "SpecHub drafts two siblings, one of them the draft's likeliest token, and couples the pair with the target",
           "Sun et al. (SpecHub), arXiv 2411.05289; MasterGodzilla/Speculative_decoding_OT, Sequoia/Tree/MyTree.py (verify), "
           "commit b67e121",
           {}},
          true,
          {.trees = {tokens::Siblings::hub}, .children = 2},
          {},
          [](const config::Arguments&) { return std::make_unique<SpecHubRule>(); },
          true};  // the default for such siblings
}

}  // namespace specsim::verify
