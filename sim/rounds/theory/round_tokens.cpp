#include "sim/rounds/theory/round_tokens.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/lossy.h"
#include "sim/rounds/theory/sibling_draws.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace specsim::theory {

namespace {

double mass_of_token(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<std::vector<int>> children_of(const TreeShape& tree) {
  std::vector<std::vector<int>> children(index_of(tree.size()));
  for (int node = 1; node < tree.size(); ++node) children[index_of(tree.parent[index_of(node)])].push_back(node);
  return children;
}

TokenMoments walk_on(const std::vector<std::vector<int>>& children, const TreeShape& tree,
                     const std::vector<NodeTokens>& by_depth, std::span<const double> behind, int node, std::size_t depth) {
  TokenMoments moments(behind.size());
  const std::vector<int>& own = children[index_of(node)];
  if (own.empty()) {
    moments.add_token(behind);
    return moments;
  }
  const NodeTokens& rule = by_depth[std::min(depth, by_depth.size() - 1)];
  for (const int child : own) {
    const std::size_t rank = index_of(tree.rank[index_of(child)]);
    SPECSIM_CHECK(rank < own.size(), "a child of rank {} among {}", rank, own.size());
    moments.add_before(rule.accepted[rank], walk_on(children, tree, by_depth, behind, child, depth + 1));
  }
  moments.add_token(rule.rejected[own.size()]);
  return moments;
}

// Typical acceptance in one state: what a node that is accepted leads to, by the height of the longest accepted path below it.
class TypicalTokens {
 public:
  TypicalTokens(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, std::vector<double> accepts,
                const TokenClasses& classes)
      : distributions_(distributions),
        tree_(tree),
        sampling_(sampling),
        accepts_(std::move(accepts)),
        classes_(classes),
        children_(children_of(tree)),
        behind_(classes.masses(distributions.target[0])) {}

  [[nodiscard]] TokenMoments round() const {
    TokenMoments all(classes_.count);
    for (const TokenMoments& height : below(0, 0)) all.add(height, 1.0);
    return all;
  }

 private:
  using Heights = std::vector<TokenMoments>;  // [height]; what is missing from a mass of 1: the node itself is not accepted

  [[nodiscard]] Heights below(int node, std::size_t depth) const {
    Heights heights(index_of(tree_.depth()) - depth + 1, TokenMoments(classes_.count));
    const std::vector<int>& children = children_[index_of(node)];
    if (children.empty()) {
      heights[0].add_token(behind_);
      return heights;
    }
    std::vector<Heights> deeper;  // what each child leads to once it is accepted
    int ranks = 0;
    for (const int child : children) {
      deeper.push_back(below(child, depth + 1));
      ranks = std::max(ranks, tree_.rank[index_of(child)] + 1);
    }
    const std::vector<double>& draft = distributions_.draft[std::min(depth, distributions_.draft.size() - 1)][0];
    if (sampling_ == TreeSampling::with_replacement) {
      std::vector<double> token(draft.size());
      for (std::size_t x = 0; x < token.size(); ++x) token[x] = draft[x] * accepts_[x];
      const std::vector<double> by_class = classes_.masses(token);
      std::vector<Heights> each;
      for (const Heights& own : deeper) each.push_back(behind_token(by_class, own));
      add_longest(each, 1.0, heights);
      return heights;
    }
    each_draw(draft, ranks, sampling_, [&](const std::vector<int>& tokens, double probability) {
      std::vector<Heights> each;
      for (std::size_t i = 0; i < children.size(); ++i) {
        const std::size_t rank = index_of(tree_.rank[index_of(children[i])]);
        if (rank >= tokens.size()) continue;
        std::vector<double> by_class(classes_.count, 0.0);
        by_class[classes_.class_of[index_of(tokens[rank])]] = accepts_[index_of(tokens[rank])];
        each.push_back(behind_token(by_class, deeper[i]));
      }
      add_longest(each, probability, heights);
    });
    return heights;
  }
  [[nodiscard]] static Heights behind_token(std::span<const double> token, const Heights& deeper) {
    Heights own(deeper.size(), TokenMoments(token.size()));
    for (std::size_t h = 0; h < own.size(); ++h) own[h].add_before(token, deeper[h]);
    return own;
  }
  static double mass_below(const Heights& heights, std::size_t height) {
    double sum = 0.0;
    for (std::size_t h = 0; h < std::min(height, heights.size()); ++h) sum += heights[h].mass();
    return sum;
  }
  // The first of the longest of children that are independent of each other; the target's own token where none is accepted.
  void add_longest(const std::vector<Heights>& each, double probability, Heights& heights) const {
    double none = probability;
    for (const Heights& own : each) none *= std::max(0.0, 1.0 - mass_below(own, own.size()));
    std::vector<double> token = behind_;
    for (double& mass : token) mass *= none;
    heights[0].add_token(token);
    for (std::size_t h = 0; h + 1 < heights.size(); ++h)
      for (std::size_t k = 0; k < each.size(); ++k) {
        double others = probability;  // elder siblings are shorter, younger ones no longer
        for (std::size_t i = 0; i < each.size(); ++i)
          if (i != k) others *= std::max(0.0, 1.0 - mass_below(each[i], each[i].size()) + mass_below(each[i], i < k ? h : h + 1));
        heights[h + 1].add(each[k][h], others);
      }
  }

  const Automaton& distributions_;
  const TreeShape& tree_;
  TreeSampling sampling_;
  std::vector<double> accepts_;  // [token]
  const TokenClasses& classes_;
  std::vector<std::vector<int>> children_;
  std::vector<double> behind_;  // the target's own token, by class
};

}  // namespace

std::vector<double> TokenMoments::covariance() const {
  std::vector<double> covariance = second_;
  for (std::size_t a = 0; a < classes(); ++a)
    for (std::size_t b = 0; b < classes(); ++b) covariance[a * classes() + b] -= first_[a] * first_[b];
  return covariance;
}

void TokenMoments::add_token(std::span<const double> token) {
  for (std::size_t a = 0; a < classes(); ++a) {
    mass_ += token[a];
    first_[a] += token[a];
    second_[a * classes() + a] += token[a];
  }
}

void TokenMoments::add_before(std::span<const double> token, const TokenMoments& rest) {
  const double all = mass_of_token(token);
  if (all == 0.0) return;
  mass_ += all * rest.mass_;
  for (std::size_t a = 0; a < classes(); ++a) {
    first_[a] += token[a] * rest.mass_ + all * rest.first_[a];
    double* const row = &second_[a * classes()];
    row[a] += token[a] * rest.mass_;
    for (std::size_t b = 0; b < classes(); ++b)
      row[b] += token[a] * rest.first_[b] + rest.first_[a] * token[b] + all * rest.second_[a * classes() + b];
  }
}

void TokenMoments::add(const TokenMoments& other, double weight) {
  mass_ += weight * other.mass_;
  for (std::size_t i = 0; i < first_.size(); ++i) first_[i] += weight * other.first_[i];
  for (std::size_t i = 0; i < second_.size(); ++i) second_[i] += weight * other.second_[i];
}

void TokenMoments::add_behind(std::span<const std::uint16_t> kept, std::span<const double> token) {
  const double all = mass_of_token(token);
  if (all == 0.0) return;
  add_token(token);
  for (const std::uint16_t a : kept) {
    first_[a] += all;
    for (const std::uint16_t b : kept) second_[a * classes() + b] += all;
    for (std::size_t b = 0; b < classes(); ++b) {
      second_[a * classes() + b] += token[b];
      second_[b * classes() + a] += token[b];
    }
  }
}

TokenMoments walked_tokens(const TreeShape& tree, const std::vector<NodeTokens>& by_depth, std::span<const double> behind) {
  check_tree(tree);
  return walk_on(children_of(tree), tree, by_depth, behind, 0, 0);
}

std::vector<double> TokenClasses::masses(std::span<const double> by_token) const {
  std::vector<double> masses(count, 0.0);
  for (std::size_t x = 0; x < by_token.size(); ++x) masses[class_of[x]] += by_token[x];
  return masses;
}

TokenMoments joint_ratio_tokens(const Automaton& distributions, int draft_length, const TokenClasses& classes) {
  SPECSIM_CHECK(distributions.states == 1, "{} states", distributions.states);
  TokenMoments moments(classes.count);
  std::vector<std::uint16_t> of_kept;
  each_joint_ratio_end(block_context(distributions), draft_length, 0,
                       [&](std::span<const int> kept, std::span<const double> final) {
                         of_kept.clear();
                         for (const int token : kept) of_kept.push_back(classes.class_of[index_of(token)]);
                         moments.add_behind(of_kept, classes.masses(final));
                       });
  return moments;
}

TokenMoments typical_tokens(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, double epsilon,
                            double delta, const TokenClasses& classes) {
  SPECSIM_CHECK(distributions.states == 1, "{} states", distributions.states);
  return TypicalTokens(distributions, tree, sampling, typical_acceptance(distributions.target[0], epsilon, delta), classes)
      .round();
}

TokenMoments typical_medusa_tokens(const Automaton& distributions, const TreeShape& tree, double epsilon, double delta,
                                   const TokenClasses& classes) {
  SPECSIM_CHECK(distributions.states == 1, "{} states", distributions.states);
  constexpr double kWithin = 1e-5;
  const std::vector<double>& target = distributions.target[0];
  const std::vector<double> accepts = typical_acceptance(target, epsilon, delta, kWithin);
  const std::vector<int> depths = tree.depths();
  struct Path {
    bool held = true;
    double likelihood = 1.0;
    std::vector<std::uint16_t> classes;
  };
  std::vector<Path> paths(index_of(tree.size()));
  std::size_t best = 0;
  for (std::size_t node = 1; node < paths.size(); ++node) {
    const Path& above = paths[index_of(tree.parent[node])];
    const auto depth = index_of(depths[node]) - 1;
    const std::vector<double>& draft = distributions.draft[std::min(depth, distributions.draft.size() - 1)][0];
    const std::size_t rank = index_of(tree.rank[node]);
    int token = -1;
    each_draw(draft, tree.rank[node] + 1, TreeSampling::top, [&](const std::vector<int>& tokens, double /*probability*/) {
      if (rank < tokens.size()) token = tokens[rank];
    });
    paths[node] = above;
    paths[node].held = above.held && token >= 0 && accepts[index_of(token)] > 0.0;
    if (!paths[node].held) continue;
    paths[node].likelihood *= target[index_of(token)];
    paths[node].classes.push_back(classes.class_of[index_of(token)]);
    if (depths[node] > depths[best] || (depths[node] == depths[best] && paths[node].likelihood > paths[best].likelihood))
      best = node;
  }
  std::vector<double> likeliest(target.size(), 0.0);
  likeliest[static_cast<std::size_t>(std::max_element(target.begin(), target.end()) - target.begin())] = 1.0;
  TokenMoments moments(classes.count);
  moments.add_behind(paths[best].classes, classes.masses(likeliest));
  return moments;
}

}  // namespace specsim::theory
