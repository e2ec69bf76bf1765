#include "sim/rounds/theory/round_tokens.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/lossy.h"
#include "sim/rounds/theory/typical_walk.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace specsim::theory {

namespace {

double mass_of_token(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TokenMoments walk_on(const std::vector<std::vector<int>>& children, const TreeShape& tree,
                     const std::vector<NodeTokens>& by_depth, std::span<const double> after_leaf, int node, std::size_t depth) {
  TokenMoments moments(after_leaf.size());
  const std::vector<int>& own = children[index_of(node)];
  if (own.empty()) {
    moments.add_token(after_leaf);
    return moments;
  }
  const NodeTokens& rule = by_depth[std::min(depth, by_depth.size() - 1)];
  for (const int child : own) {
    const std::size_t rank = index_of(tree.rank[index_of(child)]);
    SPECSIM_CHECK(rank < own.size(), "a child of rank {} among {}", rank, own.size());
    moments.add_before(rule.accepted[rank], walk_on(children, tree, by_depth, after_leaf, child, depth + 1));
  }
  moments.add_token(rule.rejected[own.size()]);
  return moments;
}

// The tokens of the rounds of one height, in distributions of one state.
struct TypicalTokens {
  using Part = TokenMoments;
  const TokenClasses& classes;
  std::vector<double> accepts;  // [token]
  std::vector<double> final;    // the target's own token, by class

  [[nodiscard]] Part none() const { return Part(classes.count); }
  [[nodiscard]] static double mass(const Part& part) { return part.mass(); }
  static void add(const Part& from, double weight, Part& to) { to.add(from, weight); }
  void add_final(int /*state*/, double weight, Part& to) const {
    std::vector<double> token = final;
    for (double& mass : token) mass *= weight;
    to.add_token(token);
  }
  template <class Deeper>
  void add_child(int /*state*/, std::span<const double> drafted, const Deeper& deeper, std::vector<Part>& own) const {
    std::vector<double> token(drafted.size());
    for (std::size_t x = 0; x < token.size(); ++x) token[x] = drafted[x] * accepts[x];
    const std::vector<double> by_class = classes.masses(token);
    const std::vector<Part>& heights = deeper(0);
    for (std::size_t h = 0; h < heights.size(); ++h) own[h].add_before(by_class, heights[h]);
  }
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

void TokenMoments::append_token(std::span<const std::uint16_t> kept, std::span<const double> token) {
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

TokenMoments walked_tokens(const TreeShape& tree, const std::vector<NodeTokens>& by_depth, std::span<const double> after_leaf) {
  check_tree(tree);
  return walk_on(tree.children(), tree, by_depth, after_leaf, 0, 0);
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
                         moments.append_token(of_kept, classes.masses(final));
                       });
  return moments;
}

TokenMoments typical_tokens(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling, double epsilon,
                            double delta, const TokenClasses& classes) {
  SPECSIM_CHECK(distributions.states == 1, "{} states", distributions.states);
  TypicalWalk<TypicalTokens> typical(
      distributions, tree, sampling,
      {classes, typical_acceptance(distributions.target[0], epsilon, delta), classes.masses(distributions.target[0])});
  TokenMoments all(classes.count);
  for (const TokenMoments& height : typical.below(0, 0)) all.add(height, 1.0);
  return all;
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
    const std::vector<double>& draft = distributions.draft_at(depths[node] - 1, 0);
    const std::size_t rank = index_of(tree.rank[node]);
    const std::vector<int> tokens = likeliest(draft, rank + 1);
    const int token = rank < tokens.size() && draft[index_of(tokens[rank])] > 0.0 ? tokens[rank] : -1;
    paths[node] = above;
    paths[node].held = above.held && token >= 0 && accepts[index_of(token)] > 0.0;
    if (!paths[node].held) continue;
    paths[node].likelihood *= target[index_of(token)];
    paths[node].classes.push_back(classes.class_of[index_of(token)]);
    if (depths[node] > depths[best] || (depths[node] == depths[best] && paths[node].likelihood > paths[best].likelihood))
      best = node;
  }
  std::vector<double> final(target.size(), 0.0);
  final[index_of(likeliest(target, 1)[0])] = 1.0;
  TokenMoments moments(classes.count);
  moments.append_token(paths[best].classes, classes.masses(final));
  return moments;
}

}  // namespace specsim::theory
