#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <cmath>

namespace specsim::verify {

namespace {

class MedusaBar final : public NodePlan {
 public:
  double least = 0.0;
};

class TypicalMedusaRule final : public BlockRule {
 public:
  struct Params {
    double epsilon = 0.09;
    double delta = 0.3;
  };
  explicit TypicalMedusaRule(const Params& params) : params_(params) {}

  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    constexpr double kWithin = 1e-5;  // the program's constant, inside the logarithm
    double entropy = 0.0;
    for (std::size_t x = 0; x < distributions.vocab(); ++x) {
      const double p = distributions.target(static_cast<Token>(x));
      entropy -= p * std::log(p + kWithin);
    }
    auto plan = std::make_unique<MedusaBar>();
    plan->least = std::min(params_.epsilon, params_.delta * std::exp(-entropy));
    return plan;
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t /*vocab*/, int /*children*/) const override {
    return sizeof(MedusaBar) + kHeapBytes;
  }

  AcceptedPath verify(Block& block) const override {
    const int end = best_below(block, 0).node;
    const math::RatioTable& distributions = block.distributions(end);
    Token final_token = 0;
    for (std::size_t x = 1; x < distributions.vocab(); ++x)
      if (distributions.target(static_cast<Token>(x)) > distributions.target(final_token)) final_token = static_cast<Token>(x);
    return {end, final_token};
  }

 private:
  struct End {
    int node = 0;
    double likelihood = 1.0;  // likelihood of the path from the node of the query
  };

  // The likeliest of the longest accepted paths from `node` on; ties: the first.
  End best_below(Block& block, int node) const {
    End best{node, 1.0};
    if (block.children(node) == 0) return best;
    const tokens::Tree& tree = block.tree();
    const math::RatioTable& distributions = block.distributions(node);
    const double least = static_cast<const MedusaBar*>(block.plan(node))->least;
    const int first = tree.nodes[static_cast<std::size_t>(node)].first_child;
    const auto depth = [&](int of) { return tree.nodes[static_cast<std::size_t>(of)].depth; };
    for (int child = first; child < first + block.children(node); ++child) {
      const double own = distributions.target(block.token(child));
      if (!(own > least)) continue;
      End end = best_below(block, child);
      end.likelihood *= own;
      if (depth(end.node) > depth(best.node) || (depth(end.node) == depth(best.node) && end.likelihood > best.likelihood))
        best = end;
    }
    return best;
  }

  Params params_;
};

}  // namespace

VerifierEntry typical_medusa_verifier() {
  using P = TypicalMedusaRule::Params;
  static const config::Fields<P> fields = {
      {"epsilon", &P::epsilon, "a token above this target probability is always accepted (posterior_threshold)",
       config::between(0, 1)},
      {"delta", &P::delta,
       "the threshold is delta times exp(-entropy of the target) if that is lower than epsilon (posterior_alpha)",
       config::between(0, 1e6)},
  };
  return {
      {"typical_medusa",
       "typical acceptance as Medusa's program runs it: the likeliest of the longest accepted paths, then the target's argmax",
       "Cai et al. (Medusa), arXiv 2401.10774; FasterDecoding/Medusa, medusa/model/utils.py (evaluate_posterior), commit 10a2697",
       fields},
      false,
      {.trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
      {},
      [](const config::Arguments& arguments) { return std::make_unique<TypicalMedusaRule>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
