#include "sim/rounds/verify/verifier.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/huge_array.h"
#include "sim/foundation/rng/address.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace specsim::verify {

namespace {

constexpr int kMostTokens = 8;
constexpr int kMostChildren = 8;

// Weights of a few outcomes.
class WeightsPick final : public Pickable {
 public:
  explicit WeightsPick(const std::vector<double>& weights) : weights_(weights) {}
  [[nodiscard]] Token pick(std::uint64_t bits) const override {
    double sum = 0.0;
    for (const double weight : weights_) sum += weight;
    double place = rng::to_unit(bits) * sum;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (!(weights_[i] > 0.0)) continue;
      if (place < weights_[i]) return static_cast<Token>(i);
      place -= weights_[i];
      last = i;
    }
    return static_cast<Token>(last);
  }

 private:
  const std::vector<double>& weights_;
};

// The best coupling of a set of sibling tokens with the target's token. It is a maximum flow from the sets (with the draft's
// probabilities) to the tokens (with the target's), where a set is connected only to its own tokens.
class Coupling final : public NodePlan {
 public:
  Coupling(const math::RatioTable& distributions, int children) : vocab_(distributions.vocab()) {
    const std::size_t sets = std::size_t{1} << vocab_;
    std::vector<double> likely(sets, 0.0);
    likely[0] = 1.0;
    for (int i = 0; i < children; ++i) {
      std::vector<double> more(sets, 0.0);
      for (std::size_t set = 0; set < sets; ++set)
        for (std::size_t x = 0; x < vocab_; ++x)
          more[set | std::size_t{1} << x] += likely[set] * distributions.draft(static_cast<Token>(x));
      likely = std::move(more);
    }
    set_left_ = likely;
    rest_.resize(vocab_);
    for (std::size_t x = 0; x < vocab_; ++x) rest_[x] = distributions.target(static_cast<Token>(x));
    flow_.assign(sets, std::vector<double>(vocab_, 0.0));
    while (augment()) {
    }
    // The flow from a set of drafts to each of its tokens, followed by the flow to the residual.
    for (std::size_t set = 0; set < sets; ++set) flow_[set].push_back(set_left_[set]);
  }

  static std::size_t bytes(std::size_t vocab) {
    // A set's shares are appended to a vector, which doubles when it is full.
    const std::size_t set = sizeof(double) + sizeof(std::vector<double>) + 2 * vocab * sizeof(double) + kHeapBytes;
    return sizeof(Coupling) + (set << vocab) + vocab * sizeof(double) + 4 * kHeapBytes;
  }

  [[nodiscard]] const std::vector<double>& of_set(std::size_t set) const { return flow_[set]; }
  [[nodiscard]] const std::vector<double>& residual() const { return rest_; }

 private:
  // Augments the flow along a shortest path of free capacity from a set with mass left to a token with mass left, forward along
  // edges and backward along flow (Edmonds and Karp). False: there is no such path.
  bool augment() {
    const std::size_t sets = flow_.size();
    constexpr std::size_t kUnseen = std::numeric_limits<std::size_t>::max();
    constexpr std::size_t kStart = kUnseen - 1;
    std::vector<std::size_t> from_of_set(sets, kUnseen);      // the token that a set was reached from
    std::vector<std::size_t> from_of_token(vocab_, kUnseen);  // the set that a token was reached from
    std::vector<std::size_t> queue;
    for (std::size_t set = 1; set < sets; ++set)
      if (set_left_[set] > 0.0) {
        from_of_set[set] = kStart;
        queue.push_back(set);
      }
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::size_t set = queue[at];
      for (std::size_t x = 0; x < vocab_; ++x) {
        if ((set >> x & 1) == 0 || from_of_token[x] != kUnseen) continue;
        from_of_token[x] = set;
        if (rest_[x] > 0.0) {
          fill(x, from_of_set, from_of_token, kStart);
          return true;
        }
        for (std::size_t other = 1; other < sets; ++other)
          if (from_of_set[other] == kUnseen && flow_[other][x] > 0.0) {
            from_of_set[other] = x;
            queue.push_back(other);
          }
      }
    }
    return false;
  }

  void fill(std::size_t end, const std::vector<std::size_t>& from_of_set, const std::vector<std::size_t>& from_of_token,
            std::size_t start) {
    double room = rest_[end];
    std::size_t set = from_of_token[end];
    for (; from_of_set[set] != start; set = from_of_token[from_of_set[set]]) room = std::min(room, flow_[set][from_of_set[set]]);
    room = std::min(room, set_left_[set]);
    set_left_[set] -= room;
    rest_[end] -= room;
    for (std::size_t x = end;;) {
      set = from_of_token[x];
      flow_[set][x] += room;
      if (from_of_set[set] == start) break;
      x = from_of_set[set];
      flow_[set][x] -= room;
    }
  }

  std::size_t vocab_;
  std::vector<double> set_left_;           // [set]: the draft's mass that is not yet coupled
  std::vector<double> rest_;               // [token]: the target's mass that is not yet coupled
  std::vector<std::vector<double>> flow_;  // [set][token]
};

class OptimalTransportRule final : public NodeRule {
 public:
  [[nodiscard]] std::unique_ptr<NodePlan> plan(const math::RatioTable& distributions, int children) const override {
    SPECSIM_CHECK(distributions.vocab() <= kMostTokens && children <= kMostChildren, "{} tokens, {} children",
                  distributions.vocab(), children);
    return std::make_unique<Coupling>(distributions, children);
  }
  [[nodiscard]] std::size_t plan_bytes(std::size_t vocab, int /*children*/) const override { return Coupling::bytes(vocab); }

 protected:
  int step(Block& block, int node, Token& final_token) const override {
    const auto* coupling = static_cast<const Coupling*>(block.plan(node));
    const int first = block.tree().nodes[static_cast<std::size_t>(node)].first_child;
    std::size_t set = 0;
    for (int child = first; child < first + block.children(node); ++child) set |= std::size_t{1} << block.token(child);
    const Token chosen = block.choose(node, WeightsPick(coupling->of_set(set)));
    for (int child = first; child < first + block.children(node); ++child)
      if (block.token(child) == chosen) return child;
    final_token = block.pick(node, WeightsPick(coupling->residual()));
    return kNone;
  }
};

}  // namespace

VerifierEntry optimal_transport_verifier() {
  return {{"optimal_transport",
           "the best possible rule for siblings drawn with replacement, computed as an exact coupling",
           "Sun et al. (SpecTr), arXiv 2310.15141",
           {}},
          true,
          {.trees = {tokens::Siblings::independent}, .vocab = kMostTokens, .children = kMostChildren},
          {},
          [](const config::Arguments&) { return std::make_unique<OptimalTransportRule>(); }};
}

}  // namespace specsim::verify
