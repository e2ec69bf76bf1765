#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

namespace specsim::verify {

namespace {

// Tokens ordered by target / draft, larger is better: of two paths the better one has the better token where they part.
class TokenOrder final : public NodePlan {
 public:
  explicit TokenOrder(const math::RatioTable& distributions) : place_(distributions.vocab()), below_(distributions.vocab()) {
    std::vector<Token> order(distributions.vocab());
    std::iota(order.begin(), order.end(), Token{0});
    const auto ratio = [&](Token x) {
      if (distributions.draft(x) > 0.0) return distributions.target(x) / distributions.draft(x);
      return distributions.target(x) > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
    };
    std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) { return ratio(a) < ratio(b); });
    double sum = 0.0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      place_[order[i]] = static_cast<std::uint32_t>(i);
      below_[order[i]] = sum;
      sum += distributions.draft(order[i]);
    }
  }
  static std::size_t bytes(std::size_t vocab) {
    return sizeof(TokenOrder) + vocab * (sizeof(double) + sizeof(std::uint32_t)) + 3 * kHeapBytes;
  }
  [[nodiscard]] std::uint32_t place(Token x) const { return place_[x]; }
  [[nodiscard]] double below(Token x) const { return below_[x]; }  // the draft's probability of worse tokens

 private:
  std::vector<std::uint32_t> place_;
  std::vector<double> below_;
};

// A draw from weights, token by token.
class OwnWeightsPick final : public Pickable {
 public:
  OwnWeightsPick(const std::vector<double>& weights, double sum) : weights_(weights), sum_(sum) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    double place = rng::to_unit(bits) * sum_;
    std::size_t last = 0;
    for (std::size_t x = 0; x < weights_.size(); ++x) {
      if (!(weights_[x] > 0.0)) continue;
      if (place < weights_[x]) return static_cast<Token>(x);
      place -= weights_[x];
      last = x;
    }
    return static_cast<Token>(last);
  }

 private:
  const std::vector<double>& weights_;
  double sum_;
};

// The state of the best path after some of its tokens.
struct PathStep {
  int node = 0;
  double stays = 1.0;  // block verification's p: the probability with which the path up to here may stay
  double worse = 0.0;  // P(a drafted path is worse than this one so far) / P(it is this one)
};

class GreedyMultiPathRule final : public BlockRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int /*children*/) const override {
    return std::make_unique<TokenOrder>(distributions);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return TokenOrder::bytes(vocab); }

  AcceptedPath verify(Block& block) const override {
    const int paths = block.children(0);
    if (paths == 0) return {0, block.pick_target(0)};
    thread_local std::vector<PathStep> steps;
    follow(block, paths, steps);
    const bool whole = block.children(steps.back().node) == 0 && steps.back().stays > 0.0;
    thread_local std::vector<double> rest;
    for (std::size_t i = steps.size(); i-- > 1;) {
      const PathStep& at = steps[i];
      if (!(at.stays > 0.0)) continue;
      if (whole && i + 1 == steps.size()) {
        if (block.accept(at.node, {at.stays, 1.0})) return {at.node, block.pick_target(at.node)};
        continue;
      }
      const double z = rest_of(block, at, paths, rest);
      if (block.accept(at.node, {z, z + 1.0 - at.stays})) return {at.node, block.pick(at.node, OwnWeightsPick(rest, z))};
    }
    const double z = rest_of(block, steps.front(), paths, rest);
    return {0, z > 0.0 ? block.pick(0, OwnWeightsPick(rest, z)) : block.pick_target(0)};
  }

 private:
  static constexpr double kFar = 1e100;  // at this ratio practically all paths are worse

  // Follows the best path, up to where it may not stay.
  static void follow(Block& block, int paths, std::vector<PathStep>& steps) {
    const std::vector<tokens::Tree::Node>& nodes = block.tree().nodes;
    thread_local std::vector<int> alike;  // the paths that share the best path's prefix, by their next node
    alike.clear();
    for (int child = nodes[0].first_child; child < nodes[0].first_child + paths; ++child) alike.push_back(child);
    steps.assign(1, PathStep());
    for (;;) {
      const PathStep above = steps.back();
      const math::RatioTable& distributions = block.distributions(above.node);
      const auto& order = static_cast<const TokenOrder&>(*block.plan(above.node));
      Token best = block.token(alike.front());
      for (const int node : alike)
        if (order.place(block.token(node)) > order.place(best)) best = block.token(node);
      std::erase_if(alike, [&](int node) { return block.token(node) != best; });
      const double skewed = chosen(distributions, order, above.worse, paths, best);
      const double stays = std::min(1.0, above.stays * distributions.target(best) / skewed);
      const double worse = (above.worse + order.below(best)) / distributions.draft(best);
      steps.push_back({alike.front(), stays > 1e-300 ? stays : 0.0, std::min(worse, kFar)});
      if (!(steps.back().stays > 0.0) || block.children(alike.front()) == 0) break;
      for (int& node : alike) node = nodes[static_cast<std::size_t>(node)].first_child;
    }
    // A step above is on the first path that shared it: move it to the path that was chosen.
    int node = steps.back().node;
    for (std::size_t i = steps.size(); i-- > 0;) {
      steps[i].node = node;
      node = nodes[static_cast<std::size_t>(node)].parent;
    }
  }

  // P(the best of `paths` paths continues with x | it begins as this one). A is the probability of a worse path, X that of this
  // one, B and q those of a worse token and of x, all divided by X. It is ((A + B + q)^paths - (A + B)^paths) / ((A + X)^paths -
  // A^paths), with the differences of powers factored, so that nothing cancels.
  static double chosen(const math::RatioTable& distributions, const TokenOrder& order, double worse, int paths, Token x) {
    const double q = distributions.draft(x);
    const double low = (worse + order.below(x)) / (worse + 1.0);
    const double high = (worse + order.below(x) + q) / (worse + 1.0);
    return q * powers(high, low, paths) / powers(1.0, worse / (worse + 1.0), paths);
  }
  // (a^n - b^n) / (a - b).
  static double powers(double a, double b, int n) {
    double sum = 1.0;
    double power = 1.0;
    for (int i = 1; i < n; ++i) {
      power *= b;
      sum = sum * a + power;
    }
    return sum;
  }

  // The weights (stays target - chosen)+ of the token after `at`, and their sum.
  static double rest_of(Block& block, const PathStep& at, int paths, std::vector<double>& rest) {
    const math::RatioTable& distributions = block.distributions(at.node);
    const auto& order = static_cast<const TokenOrder&>(*block.plan(at.node));
    rest.resize(distributions.vocab());
    double sum = 0.0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const auto x = static_cast<Token>(i);
      rest[i] = std::max(at.stays * distributions.target(x) - chosen(distributions, order, at.worse, paths, x), 0.0);
      sum += rest[i];
    }
    return sum;
  }
};

}  // namespace

VerifierEntry greedy_multi_path_verifier() {
  return {{"greedy_multi_path",
           "picks the best of several drafted paths and judges it by block verification, with the distribution of a best path",
           "Thomas, Pal, arXiv 2602.16961",
           {}},
          true,
          {.trees = {tokens::Siblings::independent}, .joint = true, .paths = true},
          {},
          [](const config::Arguments&) { return std::make_unique<GreedyMultiPathRule>(); }};
}

}  // namespace specsim::verify
