#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <vector>

namespace specsim::verify {

namespace {

// Running sums of the target's distribution, for a draw that leaves some tokens out.
class TargetSums final : public NodePlan {
 public:
  explicit TargetSums(const math::RatioTable& distributions) : sums_(distributions.vocab() + 1, 0.0) {
    for (std::size_t x = 0; x + 1 < sums_.size(); ++x) sums_[x + 1] = sums_[x] + distributions.target(static_cast<Token>(x));
  }
  static std::size_t bytes(std::size_t vocab) { return sizeof(TargetSums) + (vocab + 1) * sizeof(double) + 2 * kHeapBytes; }

  // `out`: tokens to leave out, in increasing order. Some mass must remain.
  [[nodiscard]] Token pick_without(const std::vector<Token>& out, double u) const {
    double left = sums_.back();
    for (const Token x : out) left -= mass(x);
    double place = u * left;
    for (const Token x : out)
      if (place >= sums_[x]) place += mass(x);
    auto x = static_cast<std::size_t>(std::upper_bound(sums_.begin(), sums_.end(), place) - sums_.begin());
    x = std::clamp<std::size_t>(x, 1, sums_.size() - 1) - 1;
    // Rounding may lead to a token that is left out, next to the right place.
    const std::size_t last = sums_.size() - 2;
    std::size_t at = x;
    while (at < last && !allowed(at, out)) ++at;
    if (allowed(at, out)) return static_cast<Token>(at);
    while (x > 0 && !allowed(x, out)) --x;
    return static_cast<Token>(x);
  }

 private:
  [[nodiscard]] double mass(std::size_t x) const { return sums_[x + 1] - sums_[x]; }
  [[nodiscard]] bool allowed(std::size_t x, const std::vector<Token>& out) const {
    return mass(x) > 0.0 && !std::binary_search(out.begin(), out.end(), static_cast<Token>(x));
  }
  std::vector<double> sums_;  // [token]: of all tokens before it
};

class WithoutPick final : public Pickable {
 public:
  WithoutPick(const TargetSums& sums, const std::vector<Token>& out) : sums_(sums), out_(out) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override { return sums_.pick_without(out_, rng::to_unit(bits)); }

 private:
  const TargetSums& sums_;
  const std::vector<Token>& out_;
};

// One coin for all children: picks the first child whose threshold is above it.
class CoinPick final : public Pickable {
 public:
  explicit CoinPick(const std::vector<double>& bars) : bars_(bars) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    const double coin = rng::to_unit(bits);
    return static_cast<Token>(std::find_if(bars_.begin(), bars_.end(), [&](double bar) { return coin < bar; }) - bars_.begin());
  }

 private:
  const std::vector<double>& bars_;
};

class RelaxedThreshold final : public NodeRule {
 public:
  struct Params {
    double single = 1.0;
    double acc = 1.0;
  };
  explicit RelaxedThreshold(const Params& params) : params_(params) {}
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    return std::make_unique<TargetSums>(distributions);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return TargetSums::bytes(vocab); }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const math::RatioTable& distributions = block.distributions(node);
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    const int children = block.children(node);
    thread_local std::vector<double> bars;
    thread_local std::vector<Token> tokens;
    bars.clear();
    tokens.clear();
    double sum = 0.0;
    bool sure = false;  // a child up to here passes by its own probability
    for (int child = first; child < first + children; ++child) {
      const Token x = block.token(child);
      tokens.push_back(x);
      sum += distributions.target(x);
      sure = sure || distributions.target(x) >= params_.single;
      bars.push_back(sure ? 1.0 : sum / params_.acc);
    }
    const Token chosen = block.choose(node, CoinPick(bars));
    if (chosen < static_cast<Token>(children)) return first + static_cast<int>(chosen);
    std::sort(tokens.begin(), tokens.end());
    final_token = block.pick(node, WithoutPick(static_cast<const TargetSums&>(*block.plan(node)), tokens));
    return kNone;
  }

 private:
  Params params_;
};

}  // namespace

VerifierEntry relaxed_threshold_verifier() {
  using P = RelaxedThreshold::Params;
  static const config::Fields<P> fields = {
      {"single", &P::single, "a child of at least this target probability is always accepted", config::above(0, 1)},
      {"acc", &P::acc, "divisor of the children's summed target probability so far, before the coin is compared with it",
       config::above(0, 1)},
  };
  return {
      {"relaxed_threshold", "SGLang's relaxed acceptance: children pass by the target's own probabilities, with two thresholds",
       "sgl-project/sglang, sgl-kernel/csrc/speculative/speculative_sampling.cuh (TreeSpeculativeSamplingTargetOnly), commit "
       "120affb; options --speculative-accept-threshold-single and -acc",
       fields, "", "acc: 0.9"},
      false,
      {.trees = {tokens::Siblings::point_mass}},
      {},
      [](const config::Arguments& arguments) { return std::make_unique<RelaxedThreshold>(fields.read(arguments)); }};
}

}  // namespace specsim::verify
