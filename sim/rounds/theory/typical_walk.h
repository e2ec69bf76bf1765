// Typical acceptance of a tree. Every node is accepted or not by itself. The round keeps the longest path of accepted nodes
// (ties: the first) and adds a target token.
#pragma once

#include "sim/rounds/theory/automaton.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/trees.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace specsim::theory {

// `Parts` defines what is kept of the rounds whose longest accepted path has one height:
//   none()                       a Part of no rounds; mass(part) is the probability of its rounds
//   add(from, weight, to)        adds the rounds of another part
//   add_final(state, weight, to) adds rounds that end here, with the target's own token
//   add_child(state, drafted, deeper, own)
//                                adds rounds that accept a child, which is token x with probability drafted[x], and go on with
//                                deeper(next state), height by height
template <class Parts>
class TypicalWalk {
 public:
  using Heights =
      std::vector<typename Parts::Part>;  // a mass below 1: the rest is the probability that the node itself is not accepted

  TypicalWalk(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, Parts parts)
      : distributions_(distributions),
        tree_(tree),
        sampling_(sampling),
        parts_(std::move(parts)),
        depths_(tree.depths()),
        children_(tree.children()) {}

  // The heights below a node that is accepted in a state.
  const Heights& below(int node, int state) {
    const auto [place, fresh] = known_.try_emplace({node, state});
    if (fresh) place->second = heights_below(node, state);
    return place->second;
  }

 private:
  [[nodiscard]] Heights heights_below(int node, int state) {
    const std::vector<int>& children = children_[index_of(node)];
    Heights heights(index_of(tree_.depth() - depths_[index_of(node)]) + 1, parts_.none());
    if (children.empty()) {
      parts_.add_final(state, 1.0, heights[0]);
      return heights;
    }
    const std::vector<double>& draft = distributions_.draft_at(depths_[index_of(node)], state);
    std::vector<Heights> each;
    const auto add_child = [&](int child, std::span<const double> drafted) {
      each.emplace_back(heights.size(), parts_.none());
      parts_.add_child(
          state, drafted, [&](int next) -> const Heights& { return below(child, next); }, each.back());
    };
    if (sampling_ == TreeSampling::with_replacement) {
      for (const int child : children) add_child(child, draft);
      add_longest(each, state, 1.0, heights);
      return heights;
    }
    int ranks = 0;
    for (const int child : children) ranks = std::max(ranks, tree_.rank[index_of(child)] + 1);
    std::vector<double> drawn(draft.size(), 0.0);
    each_draw(draft, ranks, sampling_, [&](const std::vector<int>& tokens, double probability) {
      each.clear();
      for (const int child : children) {
        const std::size_t rank = index_of(tree_.rank[index_of(child)]);
        if (rank >= tokens.size()) continue;
        drawn[index_of(tokens[rank])] = 1.0;
        add_child(child, drawn);
        drawn[index_of(tokens[rank])] = 0.0;
      }
      add_longest(each, state, probability, heights);
    });
    return heights;
  }

  [[nodiscard]] double mass_below(const Heights& heights, std::size_t height) const {
    double sum = 0.0;
    for (std::size_t h = 0; h < std::min(height, heights.size()); ++h) sum += parts_.mass(heights[h]);
    return sum;
  }
  // The first of the highest of independent children, with one more than its own height; none: the round ends here.
  void add_longest(const std::vector<Heights>& each, int state, double probability, Heights& heights) const {
    double none = probability;
    for (const Heights& own : each) none *= std::max(0.0, 1.0 - mass_below(own, own.size()));
    parts_.add_final(state, none, heights[0]);
    for (std::size_t h = 0; h + 1 < heights.size(); ++h)
      for (std::size_t k = 0; k < each.size(); ++k) {
        double others = probability;  // earlier siblings are shorter, later ones no longer
        for (std::size_t i = 0; i < each.size(); ++i)
          if (i != k) others *= std::max(0.0, 1.0 - mass_below(each[i], each[i].size()) + mass_below(each[i], i < k ? h : h + 1));
        parts_.add(each[k][h], others, heights[h + 1]);
      }
  }

  const Automaton& distributions_;
  const TreeShape& tree_;
  TreeSampling sampling_;
  Parts parts_;
  std::vector<int> depths_;
  std::vector<std::vector<int>> children_;
  std::map<std::pair<int, int>, Heights> known_;  // [node and state]
};

}  // namespace specsim::theory
