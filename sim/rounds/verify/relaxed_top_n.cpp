#include "sim/foundation/base/huge_array.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <vector>

namespace specsim::verify {

namespace {

// The tokens that a relaxed acceptance accepts after a text, and the likeliest one.
class RelaxedTokens final : public NodePlan {
 public:
  std::vector<Token> tokens;  // the likeliest first
};

class RelaxedTopN final : public BlockRule {
 public:
  struct Params {
    std::size_t n = 10;
    double delta = 0.6;
  };
  explicit RelaxedTopN(const Params& params) : params_(params) {}

  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    auto plan = std::make_unique<RelaxedTokens>();
    plan->tokens = admitted(distributions, params_.n);
    return plan;
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override {
    return sizeof(RelaxedTokens) + std::min(params_.n, vocab) * sizeof(Token) + 2 * kHeapBytes;
  }

  AcceptedPath verify(Block& block) const override {
    AcceptedPath path;
    while (block.children(path.node) > 0) {
      const std::vector<Token>& tokens = static_cast<const RelaxedTokens*>(block.plan(path.node))->tokens;
      const int child = block.tree().nodes[static_cast<std::size_t>(path.node)].first_child;
      if (std::find(tokens.begin(), tokens.end(), block.token(child)) == tokens.end()) {
        path.final_token = tokens.front();
        return path;
      }
      path.node = child;
    }
    path.final_token = admitted(block.distributions(path.node), 1).front();
    return path;
  }

 private:
  // Of the `n` likeliest tokens (ties: the lowest ids first), those whose probability is within delta of the first.
  [[nodiscard]] std::vector<Token> admitted(const math::RatioTable& distributions, std::size_t n) const {
    std::vector<Token> best;
    for (std::size_t x = 0; x < distributions.vocab(); ++x) {
      const auto token = static_cast<Token>(x);
      const double p = distributions.target(token);
      if (best.size() == n && !(p > distributions.target(best.back()))) continue;
      const auto at = std::find_if(best.begin(), best.end(), [&](Token other) { return p > distributions.target(other); });
      best.insert(at, token);
      if (best.size() > n) best.pop_back();
    }
    const double least = distributions.target(best.front()) - params_.delta;
    std::erase_if(best, [&](Token x) { return x != best.front() && distributions.target(x) < least; });
    return best;
  }

  Params params_;
};

}  // namespace

VerifierEntry relaxed_top_n_verifier() {
  using P = RelaxedTopN::Params;
  static const config::Fields<P> fields = {
      {"n", &P::n, "number of the target's likeliest tokens that are accepted (relaxed_topk)", config::between(1, 1024)},
      {"delta", &P::delta, "largest difference to the probability of the likeliest one (relaxed_delta)", config::between(0, 1)},
  };
  return {{"relaxed_top_n",
           "TensorRT-LLM's relaxed acceptance for thinking: a draft token passes if it is among the target's N likeliest and not "
           "far below the first",
           "NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/speculativeDecoding/mtpKernels.cu (mtpRelaxedAcceptanceKernel), "
           "tensorrt_llm/_torch/speculative/mtp.py (relaxed_topk, relaxed_delta)",
           fields},
          false,
          {},
          {},
          [](const config::Arguments& arguments) { return std::make_unique<RelaxedTopN>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
