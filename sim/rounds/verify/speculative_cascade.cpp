#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/running_sums.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace specsim::verify {

namespace {

// When a cascade hands a position, or a token of it, to the target. The authors call this the deferral rule.
enum class Deferral { chow, diff, opt, token_v1, token_v2, token_v3 };

// The distribution from which a cascade of draft and target would sample, and its residual after a rejection.
class CascadePlan final : public NodePlan {
 public:
  CascadePlan(const math::RatioTable& distributions, Deferral rule, double alpha)
      : cascade_(distributions.vocab()), rest_(distributions.vocab()) {
    const auto p = [&](std::size_t x) { return distributions.target(static_cast<Token>(x)); };
    const auto q = [&](std::size_t x) { return distributions.draft(static_cast<Token>(x)); };
    double best_target = 0.0;
    double best_draft = 0.0;
    double variation = 0.0;
    for (std::size_t x = 0; x < cascade_.size(); ++x) {
      best_target = std::max(best_target, p(x));
      best_draft = std::max(best_draft, q(x));
      variation += std::max(q(x) - p(x), 0.0);
    }
    const bool keeps_all = (rule == Deferral::chow && best_draft >= 1.0 - alpha) ||
                           (rule == Deferral::diff && best_draft >= best_target - alpha) ||
                           (rule == Deferral::opt && best_draft >= best_target - alpha * variation);
    const auto keeps = [&](std::size_t x) {
      switch (rule) {
        case Deferral::token_v1:
          return q(x) >= best_target - alpha;
        case Deferral::token_v2:
          return p(x) >= best_target - alpha;
        case Deferral::token_v3:
          return p(x) >= (1.0 - alpha) * best_target;
        case Deferral::chow:
        case Deferral::diff:
        case Deferral::opt:
          break;
      }
      return keeps_all;
    };
    double deferred = 0.0;
    bool some_kept = false;
    for (std::size_t x = 0; x < cascade_.size(); ++x) {
      some_kept = some_kept || keeps(x);
      if (!keeps(x)) deferred += q(x);
    }
    if (!some_kept) deferred = 1.0;  // the sum is 1 but for rounding
    double sum = 0.0;
    for (std::size_t x = 0; x < cascade_.size(); ++x) {
      cascade_[x] = (keeps(x) ? q(x) : 0.0) + deferred * p(x);
      rest_[x] = sum += std::max(cascade_[x] - q(x), 0.0);
    }
  }
  static std::size_t bytes(std::size_t vocab) { return sizeof(CascadePlan) + 2 * vocab * sizeof(double) + 3 * kHeapBytes; }

  [[nodiscard]] double probability(Token x) const { return cascade_[x]; }
  [[nodiscard]] double left() const { return rest_.back(); }
  [[nodiscard]] std::span<const double> rest() const { return rest_; }

 private:
  std::vector<double> cascade_;  // [token]
  std::vector<double> rest_;     // [token]: running sums of (cascade - draft)+
};

class CascadeRule final : public NodeRule {
 public:
  struct Params {
    Deferral rule = Deferral::token_v3;
    double alpha = 0.5;
  };
  explicit CascadeRule(const Params& params) : params_(params) {}
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    return std::make_unique<CascadePlan>(distributions, params_.rule, params_.alpha);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return CascadePlan::bytes(vocab); }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const auto& plan = static_cast<const CascadePlan&>(*block.plan(node));
    const int child = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const Token x = block.token(child);
    if (block.accept(child, {plan.probability(x), block.distributions(node).draft(x)})) return child;
    final_token = plan.left() > 0.0 ? block.pick(node, RunningSumsPick(plan.rest())) : block.pick_target(node);
    return kNone;
  }

 private:
  Params params_;
};

}  // namespace

VerifierEntry speculative_cascade_verifier() {
  using P = CascadeRule::Params;
  static const config::Fields<P> fields = {
      {"rule", &P::rule,
       "the paper's deferral rule: chow, diff and opt decide for a position, token_v1 to token_v3 for each token",
       config::one_of<Deferral>({{"chow", Deferral::chow},
                                 {"diff", Deferral::diff},
                                 {"opt", Deferral::opt},
                                 {"token_v1", Deferral::token_v1},
                                 {"token_v2", Deferral::token_v2},
                                 {"token_v3", Deferral::token_v3}})},
      {"alpha", &P::alpha,
       "the rule's trade-off (lenience in the authors' notebook): a larger value keeps more of the draft; 0 under chow, -1 "
       "under diff, token_v1 and token_v2 leave all to the target",
       config::between(-1000, 1000)},
  };
  return {{"speculative_cascade", "keeps the draft's distribution where a deferral rule trusts it, and the target's elsewhere",
           "Narasimhan et al. (Faster Cascades via Speculative Decoding), arXiv 2405.19261, equations 2, 5, 10, 13 to 15; "
           "google-research/google-research, speculative_cascades/speculative_cascades_gemma.ipynb, commit 19e1dcf",
           fields},
          false,
          {},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<CascadeRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
