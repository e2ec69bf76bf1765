#include "sim/rounds/theory/tree_enumeration.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace specsim::theory {
namespace {

using Distribution = std::vector<double>;

constexpr int kAbsent = -1;

// (scale target - draft)+ and its sum; divided by it unless it is 0.
struct Residual {
  Distribution distribution;
  double mass = 0.0;
};

Residual residual_of(const Distribution& target, const Distribution& draft, double scale) {
  Residual residual{Distribution(target.size()), 0.0};
  for (std::size_t x = 0; x < target.size(); ++x)
    residual.mass += residual.distribution[x] = std::max(0.0, scale * target[x] - draft[x]);
  if (residual.mass > 0.0) {
    for (double& share : residual.distribution) share /= residual.mass;
  }
  return residual;
}

class TreeWalk {
 public:
  TreeWalk(const Automaton& automaton, const TreeRound& round, int state)
      : automaton_(automaton),
        round_(round),
        depths_(round.tree.depths()),
        children_(round.tree.children()),
        tokens_(index_of(round.tree.size()), kAbsent),
        states_(index_of(round.tree.size()), state),
        told_(index_of(round.tree.size())) {}

  std::map<std::vector<int>, math::CompensatedSum> run() {
    draft_on(1, 1.0);
    return std::move(outcomes_);
  }

 private:
  [[nodiscard]] int parent_of(int node) const { return round_.tree.parent[index_of(node)]; }
  [[nodiscard]] int token_of(int node) const { return tokens_[index_of(node)]; }
  [[nodiscard]] bool drafted(int node) const { return node == 0 || token_of(node) != kAbsent; }
  [[nodiscard]] const Distribution& target_at(int node) const { return automaton_.target[index_of(states_[index_of(node)])]; }
  // The draft model's distribution of a node's children.
  [[nodiscard]] const Distribution& model_at(int node) const {
    return automaton_.draft_at(depths_[index_of(node)], states_[index_of(node)]);
  }

  // The distribution that the node's token is drawn from, empty if there is nothing to draw.
  [[nodiscard]] Distribution distribution_of(int node) const {
    const int parent = parent_of(node);
    Distribution distribution = model_at(parent);
    if (round_.sampling == TreeSampling::top) {
      const auto rank = index_of(round_.tree.rank[index_of(node)]);
      if (rank >= distribution.size()) return {};
      const auto token = index_of(likeliest(distribution, rank + 1)[rank]);
      if (distribution[token] == 0.0) return {};  // the draft does not propose it
      distribution.assign(distribution.size(), 0.0);
      distribution[token] = 1.0;
    } else if (round_.sampling == TreeSampling::without_replacement) {
      for (const int sibling : children_[index_of(parent)]) {
        if (sibling == node) break;
        if (drafted(sibling)) distribution[index_of(token_of(sibling))] = 0.0;
      }
      const double left = std::accumulate(distribution.begin(), distribution.end(), 0.0);
      if (left == 0.0) return {};
      for (double& share : distribution) share /= left;
    }
    return distribution;
  }

  // Draws the nodes from `node` on in every way, then judges the tree.
  void draft_on(int node, double probability) {
    if (node == round_.tree.size()) {
      if (round_.rule == TreeRule::traversal) {
        traverse(probability);
      } else {
        descend(0, probability);
      }
      return;
    }
    const std::size_t here = index_of(node);
    const Distribution distribution = drafted(parent_of(node)) ? distribution_of(node) : Distribution{};
    if (distribution.empty()) {
      tokens_[here] = kAbsent;
      draft_on(node + 1, probability);
      return;
    }
    told_[here] = distribution;
    for (int x = 0; x < automaton_.vocab; ++x) {
      if (distribution[index_of(x)] == 0.0) continue;
      tokens_[here] = x;
      states_[here] = automaton_.after(states_[index_of(parent_of(node))], x);
      draft_on(node + 1, probability * distribution[index_of(x)]);
    }
    tokens_[here] = kAbsent;
  }

  // The path to `node` is accepted; the final token has the given distribution.
  void finish(int node, const Distribution& final_distribution, double probability) {
    if (probability == 0.0) return;
    std::vector<int> emitted = {0};
    for (int up = node; up > 0; up = parent_of(up)) emitted.push_back(token_of(up));
    std::reverse(emitted.begin(), emitted.end());
    for (int x = 0; x < automaton_.vocab; ++x) {
      if (final_distribution[index_of(x)] == 0.0) continue;
      emitted.back() = x;
      outcomes_[emitted] += probability * final_distribution[index_of(x)];
    }
  }

  void descend(int node, double probability) {
    Distribution target = target_at(node);
    const std::vector<int>& children = children_[index_of(node)];
    if (round_.rule == TreeRule::kseq && !children.empty()) {
      const Distribution& draft = model_at(node);
      const auto drafts = static_cast<int>(children.size());
      const double factor = kseq_factor(target, draft, drafts);
      for (const int child : children) {
        const std::size_t x = index_of(token_of(child));
        const double accept = std::min(1.0, target[x] / (factor * draft[x]));
        descend_if(child, probability * accept);
        probability *= 1.0 - accept;
      }
      // The rejected distribution needs the expected number of tries, 1 + r + r^2 + ..., where r is the probability that one
      // draft is rejected.
      double rejected = 1.0;
      for (std::size_t x = 0; x < target.size(); ++x) rejected -= std::min(draft[x], target[x] / factor);
      double tries = 0.0;
      for (int k = 0; k < drafts; ++k) tries = 1.0 + std::max(0.0, rejected) * tries;
      double left = 0.0;
      Distribution rest(target.size());
      for (std::size_t x = 0; x < target.size(); ++x)
        left += rest[x] = std::max(0.0, target[x] - tries * std::min(draft[x], target[x] / factor));
      for (double& share : rest) share = left > 0.0 ? share / left : 0.0;
      check_residual(left, probability);
      finish(node, rest, probability);
      return;
    }
    for (const int child : children) {
      if (!drafted(child)) continue;
      const Distribution& told = told_[index_of(child)];
      const std::size_t x = index_of(token_of(child));
      const double accept = std::min(1.0, target[x] / told[x]);
      descend_if(child, probability * accept);
      probability *= 1.0 - accept;
      if (probability == 0.0) return;
      Residual residual = residual_of(target, told, 1.0);
      check_residual(residual.mass, probability);
      target = std::move(residual.distribution);
    }
    finish(node, target, probability);
  }

  void descend_if(int node, double probability) {
    if (probability > 0.0) descend(node, probability);
  }

  static void check_residual(double mass, double probability) {
    SPECSIM_CHECK(mass > 0.0 || probability < 1e-12, "rejected with probability {} without residual mass", probability);
  }

  // Depth first: the open path from the root; each node has the rest of its carry and of its distribution.
  void traverse(double probability) {
    struct Open {
      int node;
      double carry;
      Distribution target;
      std::size_t next_child;
    };
    std::vector<Open> path = {{0, 1.0, target_at(0), 0}};
    while (probability > 0.0) {
      Open& here = path.back();
      const std::vector<int>& children = children_[index_of(here.node)];
      if (here.next_child < children.size()) {
        const int child = children[here.next_child++];
        if (!drafted(child)) continue;
        const std::size_t x = index_of(token_of(child));
        const double carry = std::min(1.0, here.carry * here.target[x] / told_[index_of(child)][x]);
        path.push_back({child, carry, target_at(child), 0});
        continue;
      }
      const double accept = here.node == 0 ? 1.0 : here.carry;
      finish(here.node, here.target, probability * accept);
      probability *= 1.0 - accept;
      if (probability == 0.0) return;
      const int rejected = here.node;
      path.pop_back();
      Open& parent = path.back();
      Residual residual = residual_of(parent.target, told_[index_of(rejected)], parent.carry);
      const double denominator = residual.mass + 1.0 - parent.carry;
      // Neither residual nor slack is left: the child is accepted, except for rounding.
      if (denominator == 0.0) {
        check_residual(0.0, probability);
        return;
      }
      parent.carry = residual.mass / denominator;
      if (residual.mass > 0.0) parent.target = std::move(residual.distribution);
    }
  }

  const Automaton& automaton_;
  const TreeRound& round_;
  std::vector<int> depths_;
  std::vector<std::vector<int>> children_;
  std::vector<int> tokens_;
  std::vector<int> states_;
  std::vector<Distribution> told_;  // [node]: the distribution from which the node was drawn
  std::map<std::vector<int>, math::CompensatedSum> outcomes_;
};

}  // namespace

std::vector<RoundOutcome> tree_outcomes(const Automaton& automaton, const TreeRound& round, int state) {
  check_tree(round.tree);
  check_automaton(automaton, round.tree.depth());
  SPECSIM_CHECK(state >= 0 && state < automaton.states, "state = {}", state);
  SPECSIM_CHECK((round.tree.size() - 1) * std::log2(automaton.vocab) <= 22.0, "{}^{} trees are too many to enumerate",
                automaton.vocab, round.tree.size() - 1);
  SPECSIM_CHECK(round.rule != TreeRule::kseq || round.sampling == TreeSampling::with_replacement,
                "K-SEQ judges independent drafts");
  std::vector<RoundOutcome> list;
  for (const auto& [emitted, probability] : TreeWalk(automaton, round, state).run()) {
    int end = state;
    for (const int token : emitted) end = automaton.after(end, token);
    list.push_back({emitted, end, probability.value()});
  }
  return list;
}

}  // namespace specsim::theory
