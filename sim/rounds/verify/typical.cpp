#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <cmath>

namespace specsim::verify {

namespace {

class Bar final : public NodePlan {
 public:
  double least = 0.0;
};

class TypicalRule final : public BlockRule {
 public:
  struct Params {
    double epsilon = 0.09;
    double delta = 0.3;
  };
  explicit TypicalRule(const Params& params) : params_(params) {}

  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    double entropy = 0.0;
    for (std::size_t x = 0; x < distributions.vocab(); ++x) {
      const double p = distributions.target(static_cast<Token>(x));
      if (p > 0.0) entropy -= p * std::log(p);
    }
    auto plan = std::make_unique<Bar>();
    plan->least = std::min(params_.epsilon, params_.delta * std::exp(-entropy));
    return plan;
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t /*vocab*/, int /*children*/) const override {
    return sizeof(Bar) + kHeapBytes;
  }

  AcceptedPath verify(Block& block) const override {
    const int deepest = deepest_below(block, 0);
    return {deepest, block.pick_target(deepest)};
  }

 private:
  // The end of the longest accepted path from `node` on; ties: the first.
  int deepest_below(Block& block, int node) const {
    if (block.children(node) == 0) return node;
    const tokens::Tree& tree = block.tree();
    const math::RatioTable& distributions = block.distributions(node);
    const double least = static_cast<const Bar*>(block.plan(node))->least;
    const int first = tree.nodes[static_cast<std::size_t>(node)].first_child;
    int best = node;
    for (int child = first; child < first + block.children(node); ++child) {
      if (!(distributions.target(block.token(child)) > least)) continue;
      const int end = deepest_below(block, child);
      if (tree.nodes[static_cast<std::size_t>(end)].depth > tree.nodes[static_cast<std::size_t>(best)].depth) best = end;
    }
    return best;
  }

  Params params_;
};

}  // namespace

VerifierEntry typical_verifier() {
  using P = TypicalRule::Params;
  static const config::Fields<P> fields = {
      {"epsilon", &P::epsilon, "a token above this target probability is always accepted", config::between(0, 1)},
      {"delta", &P::delta, "the threshold is delta times exp(-entropy of the target) if that is lower than epsilon",
       config::between(0, 1e6)},
  };
  return {{"typical",
           "accepts tokens that the target finds likely enough, whatever the draft's probability (Medusa's typical acceptance)",
           "Cai et al. (Medusa), arXiv 2401.10774", fields},
          false,
          {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<TypicalRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
