// A verifier that judges a drafted tree of tokens as a whole. It sees only what a server has: the tree, its tokens, and the
// distributions of target and draft after each node. A chain is a tree.
#pragma once

#include "sim/foundation/math/ratio_table.h"
#include "sim/rounds/tokens/tree.h"
#include "sim/rounds/verify/accept.h"
#include "sim/rounds/verify/choices.h"
#include "sim/rounds/verify/position_rule.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace specsim::verify {

// Values that a rule computes once for a pair of distributions and a number of children.
class NodePlan {
 public:
  NodePlan() = default;
  NodePlan(const NodePlan&) = delete;
  NodePlan& operator=(const NodePlan&) = delete;
  virtual ~NodePlan() = default;
};

// One round's block. Tokens are drawn when they are first asked for, so unused tokens cost nothing. Every random choice of a
// round goes through token, accept, choose and pick; an exact enumeration overrides these. Known nodes are read without a virtual
// call, since rules ask several times per token; derived classes compute the rest.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  virtual ~Block() = default;

  [[nodiscard]] const tokens::Tree& tree() const { return *tree_; }
  [[nodiscard]] tokens::Siblings siblings() const { return siblings_; }
  // How many children of a node were drafted: nodes first_child .. of the tree. It is below the tree's number if drafting
  // stopped, or if the draft has no further token to draw without replacement.
  int children(int node) {
    const tokens::Tree::Node& own = tree_->nodes[static_cast<std::size_t>(node)];
    if (own.children == 0 || own.depth >= longest_) return 0;
    return may_stop_ && stops(node) ? 0 : placed(node).children;
  }
  Token token(int node) { return drawn(node).token; }
  // The mass that the draft's distribution had left when `node` was drawn; always 1 with replacement.
  double remaining(int node) { return drawn(node).remaining; }
  // The distributions of the token that follows `node`; its children were drawn from .draft().
  const math::RatioTable& distributions(int node) { return *placed(node).distributions; }
  // The same distributions as plain numbers, for a rule that makes one pass over each, so that tables would not pay; after a leaf
  // only the target's. Valid until another node's are requested. A block whose distributions are tables has no plain numbers: the
  // call is then a failed check.
  virtual PositionDistributions numbers(int node);
  // Called by a rule that judges positions in turn, with its verdict on `node`, while the distributions from which the token was
  // drawn are at hand. `emitted` is the node's own token, or the one that replaced it.
  virtual void judged(int /*node*/, const PositionDistributions& /*distributions*/, bool /*accepted*/, Token /*emitted*/) {}
  // The result of BlockRule::plan for these distributions; nullptr for a leaf.
  const NodePlan* plan(int node) { return placed(node).plan; }

  // Whether a node is accepted; may be called once per round and node.
  bool accept(int node, Odds odds) {
    const double u = drawn(node).u;
    return u >= 0.0 ? accepts(u, odds) : decide(node, odds);
  }
  // Picks one of a few outcomes that judge all children of a node at once; may be called once per round and node.
  virtual Token choose(int node, const Pickable& distribution) = 0;
  // A token that the verifier draws after `node`; may be called once per round and node.
  virtual Token pick(int node, const Pickable& distribution) = 0;

  // A token from (target - c draft)+ after `node`. From the target if c = 0, or if nothing is left, which only rounding can
  // cause.
  Token pick_residual(int node, const math::Residual& cut);
  Token pick_target(int node);

 protected:
  struct Node {
    std::uint32_t drawn_in = 0;   // the round that set token, u and remaining
    std::uint32_t placed_in = 0;  // the placement that set children, distributions and plan
    Token token = 0;
    double u = -1.0;  // the uniform that decides on the node; negative: decide() must be called
    double remaining = 1.0;
    int children = 0;  // number of drafted ones, unless drafting stops here
    const math::RatioTable* distributions = nullptr;
    const NodePlan* plan = nullptr;
  };

  Node& drawn(int node) {
    Node& own = nodes_[static_cast<std::size_t>(node)];
    if (own.drawn_in != round_) draw(node, own);
    return own;
  }
  Node& placed(int node) {
    Node& own = nodes_[static_cast<std::size_t>(node)];
    if (own.placed_in != placement_) place(node, own);
    return own;
  }
  virtual void draw(int node, Node& own) = 0;
  virtual void place(int node, Node& own) = 0;
  // Whether drafting ends at `node`, given its token.
  virtual bool stops(int node) = 0;
  virtual bool decide(int node, Odds odds) = 0;

  const tokens::Tree* tree_ = nullptr;
  tokens::Siblings siblings_ = tokens::Siblings::independent;
  int longest_ = kMaxDraftLength;  // no deeper node is drafted
  bool may_stop_ = false;
  std::uint32_t round_ = 0;
  std::uint32_t placement_ = 0;  // counts rounds; constant while all rounds have the same distributions
  std::vector<Node> nodes_;
};

// How a round ends: the last node of the accepted path (0: nothing was accepted), and the token after it.
struct AcceptedPath {
  int node = 0;
  Token final_token = 0;
};

class BlockRule {
 public:
  BlockRule() = default;
  BlockRule(const BlockRule&) = delete;
  BlockRule& operator=(const BlockRule&) = delete;
  virtual ~BlockRule() = default;

  [[nodiscard]] virtual std::unique_ptr<NodePlan> plan(const math::RatioTable& /*distributions*/, int /*children*/) const {
    return nullptr;
  }
  // Upper bound of a plan's bytes.
  [[nodiscard]] virtual std::size_t plan_bytes(std::size_t /*vocab*/, int /*children*/) const { return 0; }
  virtual AcceptedPath verify(Block& block) const = 0;
  // The rule for each position, if the verifier judges a chain's positions in turn; nullptr if it judges tokens jointly or among
  // siblings.
  [[nodiscard]] virtual const PositionRule* each_position() const { return nullptr; }
};

// Chains drafted in one context, in many sequences at once: [position][lane].
struct ChainLanes {
  static constexpr std::uint32_t kStride = 256;  // lanes of a position
  std::uint32_t lanes = 0;
  std::vector<const math::RatioTable*> distributions;  // [draft_length + 1]: after this many draft tokens
  std::vector<Token> tokens;                           // [draft_length][kStride]
  std::vector<std::uint64_t> random_bits;              // [draft_length][kStride]: random bits that decide on the tokens
  // The rule's verdict: how many tokens are accepted, and the distribution of the token after them (c = 0: the target).
  std::array<std::uint32_t, kStride> accepted;
  std::array<math::Residual, kStride> final_distribution;

  [[nodiscard]] std::size_t draft_length() const { return distributions.size() - 1; }
};

// A rule that can also judge chains side by side. It gives the same verdicts from the same random bits, several times as fast:
// the memory accesses of many rounds overlap, and few branches depend on one round's draws.
class ChainRule : public BlockRule {
 public:
  virtual void verify_lanes(ChainLanes& chains) const = 0;
};

// A rule that walks down from the root, node by node.
class NodeRule : public BlockRule {
 public:
  AcceptedPath verify(Block& block) const final;

 protected:
  static constexpr int kNone = -1;
  // Judges the children of a node that has some. Returns the accepted child, or kNone and sets the final token.
  virtual int step(Block& block, int node, Token& final_token) const = 0;
};

// The next siblings below nodes of one depth, one in each of `count` sequences that share a context. Arrays are indexed by place,
// in the order of `lanes`; only `residual` is indexed by lane.
struct SiblingLanes {
  const math::RatioTable* distributions = nullptr;  // after the nodes
  const NodePlan* plan = nullptr;                   // for the largest number of children of any of the nodes
  std::size_t earlier_siblings = 0;                 // siblings that were rejected before
  std::uint32_t count = 0;
  const std::uint32_t* lanes = nullptr;
  const Token* tokens = nullptr;
  const double* remaining = nullptr;           // see Block::remaining(); nullptr: 1 for all
  const std::uint64_t* random_bits = nullptr;  // random bits that decide on the tokens
  math::Residual* residual = nullptr;          // distribution of the final token; the target before the first sibling
};

// A rule that can also judge siblings side by side: the same verdicts from the same random bits, see ChainRule.
class SiblingRule : public NodeRule {
 public:
  // Sets accepted[place] to 1 or 0, and updates the residual of the rejected ones.
  virtual void judge_lanes(const SiblingLanes& siblings, std::uint32_t* accepted) const = 0;
};

}  // namespace specsim::verify
