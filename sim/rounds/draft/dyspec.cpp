#include "sim/foundation/base/token.h"
#include "sim/rounds/draft/candidates.h"
#include "sim/rounds/draft/tree_config.h"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

namespace specsim::draft {

namespace {

// Whether a node gets another child depends on the tokens drawn before that child, including its elder siblings, and never on the
// child itself. The verifier tests siblings in their order, so to it the number of siblings might as well be known in advance.
class DySpec final : public BlockDrafter {
 public:
  struct Params {
    int nodes = 64;
    int max_depth = 32;
    double threshold = 0.0;
  };
  explicit DySpec(const Params& params) : threshold_(params.threshold) {
    shape_.siblings = tokens::Siblings::without_replacement;
    shape_.draft_length = std::min(params.max_depth, params.nodes);
    shape_.nodes = params.nodes;
    shape_.draws = true;
    shape_.counts_passes = true;
  }
  [[nodiscard]] const Shape& shape() const override { return shape_; }

  void choose(DrafterInput& input, Memory* /*memory*/, ChosenBlock& block) const override {
    Growth own;
    if (threshold_ > 0.0)
      by_layers(input, own);
    else
      one_by_one(input, own);
    own.all.best(static_cast<std::size_t>(shape_.nodes), block);
  }

  [[nodiscard]] BlockWork work(int nodes) const override {
    if (threshold_ > 0.0) {
      BlockWork work{std::vector<double>(static_cast<std::size_t>(shape_.draft_length), static_cast<double>(shape_.nodes)),
                     1.0 + nodes};
      work.pass_rows.front() = 1.0;
      return work;
    }
    return {std::vector<double>(static_cast<std::size_t>(shape_.nodes), 1.0), 1.0 + nodes};
  }

 private:
  struct Growth {
    Candidates all;                                   // a node's value: the estimated probability that it is accepted
    std::vector<std::vector<Token>> children = {{}};  // [node]: their tokens, in the order of their draws
    int drawn = 0;
  };

  // Draws another child of a node; `chance` is the value that a certain child would have. Returns the child, or 0 if there is no
  // further token. `chance` becomes the value that is left for the next child.
  static int draw_child(DrafterInput& input, Growth& own, int node, double& chance) {
    std::vector<Token>& earlier_siblings = own.children[static_cast<std::size_t>(node)];
    const Ranked child = input.draw_child(own.all.block, node, earlier_siblings, own.drawn + 1);
    if (!(child.probability > 0.0)) return 0;
    ++own.drawn;
    const int added =
        own.all.add({{node, static_cast<int>(earlier_siblings.size()), child.token, chance * child.probability}}).front();
    chance *= 1.0 - child.probability;
    earlier_siblings.push_back(child.token);
    own.children.emplace_back();
    return added;
  }
  [[nodiscard]] bool full(const Growth& own) const { return own.drawn == shape_.nodes; }
  [[nodiscard]] bool deepest(const Growth& own, int node) const {
    return own.all.block.tree.nodes[static_cast<std::size_t>(node)].depth == shape_.draft_length;
  }

  // Adds one token at a time, at the place with the highest estimate: a child of a new node, or another child of an old one.
  void one_by_one(DrafterInput& input, Growth& own) const {
    using Place = std::pair<double, int>;  // estimate, minus node: ties go to the earlier node
    std::priority_queue<Place> open;
    open.emplace(1.0, 0);
    while (!full(own) && !open.empty()) {
      auto [chance, minus_node] = open.top();
      open.pop();
      const int node = -minus_node;
      if (own.children[static_cast<std::size_t>(node)].empty()) input.prepare(own.all.block, std::array{node});
      const int child = draw_child(input, own, node, chance);
      if (child == 0) continue;
      if (chance > 0.0) open.emplace(chance, minus_node);
      if (!deepest(own, child)) open.emplace(own.all.value[static_cast<std::size_t>(child)], -child);
    }
  }

  // One pass per layer: it extends every place whose estimate is above the threshold.
  void by_layers(DrafterInput& input, Growth& own) const {
    std::vector<int> layer = {0};
    while (!layer.empty() && !full(own)) {
      input.prepare(own.all.block, layer);
      std::vector<int> below;
      for (const int node : layer) {
        double chance = own.all.value[static_cast<std::size_t>(node)];
        while (chance > threshold_ && !full(own)) {
          const int child = draw_child(input, own, node, chance);
          if (child == 0) break;
          if (!deepest(own, child) && own.all.value[static_cast<std::size_t>(child)] > threshold_) below.push_back(child);
        }
      }
      layer = std::move(below);
    }
  }

  Shape shape_;
  double threshold_;
};

}  // namespace

DrafterEntry dyspec_drafter() {
  using P = DySpec::Params;
  static const config::Fields<P> fields = {
      {"nodes", &P::nodes, "maximum number of tokens of the tree", config::between(1, kMaxNodes)},
      {"max_depth", &P::max_depth, "levels at most", config::between(1, kMaxDraftLength)},
      {"threshold", &P::threshold,
       "0: one token at a time, at the place of the highest estimate, with a draft pass for each node that gets children; "
       "above 0: layer by layer, at every place whose estimate is above the threshold, with a pass for each layer",
       config::Interval{0, 1, false, true}},
  };
  return {{"dyspec", "DySpec draws a tree token by token where acceptance is likeliest, given the tokens drawn so far",
           "Xiong et al. (DySpec), arXiv 2410.11744, algorithms 1 and 2", fields, "", "nodes: 3, max_depth: 2"},
          [](const config::Arguments& arguments, Diagnostics&) { return std::make_shared<DySpec>(fields.read(arguments)); }};
}

}  // namespace specsim::draft
