// Number of tokens of each class that one round emits: mean and covariance, for rounds that are independent and alike. The output
// of a lossy rule is compared with these moments, because tokens of one round are correlated and no simpler statement holds.
#pragma once

#include "sim/rounds/theory/block.h"
#include "sim/rounds/theory/tree_enumeration.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specsim::theory {

// Moments of the counts by class. Rounds, or parts of rounds, are added, each with its probability.
class TokenMoments {
 public:
  explicit TokenMoments(std::size_t classes) : first_(classes, 0.0), second_(classes * classes, 0.0) {}

  [[nodiscard]] std::size_t classes() const { return first_.size(); }
  [[nodiscard]] double mass() const { return mass_; }
  [[nodiscard]] const std::vector<double>& mean() const { return first_; }
  [[nodiscard]] std::vector<double> covariance() const;  // [class][class]; where the mass is 1

  // Rounds that emit one token: its mass by class.
  void add_token(std::span<const double> token);
  // Rounds that emit a token followed by those of `rest`, which do not depend on it.
  void add_before(std::span<const double> token, const TokenMoments& rest);
  void add(const TokenMoments& other, double weight);
  // Rounds that emit tokens of these classes and one more, whose mass by class is `token`.
  void append_token(std::span<const std::uint16_t> kept, std::span<const double> token);

 private:
  double mass_ = 0.0;
  std::vector<double> first_;   // [class]: sum of probability and count
  std::vector<double> second_;  // [class][class]: sum of probability and the product of two counts
};

// Tokens that a rule that walks down a tree emits at a node.
struct NodeTokens {
  std::vector<std::vector<double>> accepted;  // [rank][class]: P(the child of that rank is accepted, and is of that class)
  std::vector<std::vector<double>> rejected;  // [children][class]: if this many were drafted and none is accepted, as mass
};

// by_depth: nodes at each depth, for ranks without gaps. `after_leaf`: the token after a leaf, [class].
[[nodiscard]] TokenMoments walked_tokens(const TreeShape& tree, const std::vector<NodeTokens>& by_depth,
                                         std::span<const double> after_leaf);

// class_of: [token].
struct TokenClasses {
  std::vector<std::uint16_t> class_of;
  std::size_t count = 0;

  [[nodiscard]] std::vector<double> masses(std::span<const double> by_token) const;
};

// Block verification by the joint ratio (joint_ratio_kernel), in distributions of one state.
[[nodiscard]] TokenMoments joint_ratio_tokens(const Automaton& distributions, int draft_length, const TokenClasses& classes);
// Typical acceptance (typical_kernel), in distributions of one state.
[[nodiscard]] TokenMoments typical_tokens(const Automaton& distributions, const TreeShape& tree, TreeSampling sampling,
                                          double epsilon, double delta, const TokenClasses& classes);
// Typical acceptance as in Medusa's program, in distributions of one state. Of the longest accepted paths, the one with the
// largest product of target probabilities is kept (ties: the first), and the target's likeliest token follows. Children are the
// draft's likeliest tokens, so all rounds are the same.
[[nodiscard]] TokenMoments typical_medusa_tokens(const Automaton& distributions, const TreeShape& tree, double epsilon,
                                                 double delta, const TokenClasses& classes);

}  // namespace specsim::theory
