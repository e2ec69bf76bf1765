// Token trees: expected tokens from acceptance by rank, and the best shape for a budget.
//
// acceptance[depth][rank] is P(the child of that rank is the accepted one | its parent was), ranks and depths from 0. Deeper
// nodes use the last row, so one row is Sequoia's acceptance vector and rows of one entry are a chain's n-alpha. Entries are >= 0
// and a row sums to at most 1; ranks beyond a row's end are never accepted. Acceptance at a node is assumed to be independent of
// what was accepted above it.
#pragma once

#include "sim/rounds/theory/round_distribution.h"

#include <vector>

namespace specsim::theory {

using RankAcceptance = std::vector<std::vector<double>>;

// Node 0 is the root, the last token of the text; parents come before their children.
struct TreeShape {
  std::vector<int> parent = {-1};
  std::vector<int> rank = {-1};  // rank among its siblings; ranks may be skipped, not repeated

  [[nodiscard]] int size() const { return static_cast<int>(parent.size()); }  // the root included
  [[nodiscard]] std::vector<int> depths() const;
  [[nodiscard]] std::vector<std::vector<int>> children() const;  // [node]
  [[nodiscard]] int depth() const;                               // depth of the deepest node; 0 for the root alone
  int add(int under, int at_rank);                               // the new node
};

// Throws InvariantBroken on an unknown parent, or on siblings of equal rank.
void check_tree(const TreeShape& tree);
[[nodiscard]] TreeShape chain_tree(int draft_length);
// Throws InvariantBroken unless entries are >= 0 and rows sum to at most 1.
void check_acceptance(const RankAcceptance& acceptance);
[[nodiscard]] double acceptance_of(const RankAcceptance& acceptance, int depth, int rank);
// From P(accepted >= j), j = 0 .. draft_length.
[[nodiscard]] RoundDistribution distribution_of_tails(const std::vector<double>& tails);
// Distribution of the accepted path's length: P(>= j) is the sum over nodes at depth j of the product of acceptances on the way.
[[nodiscard]] RoundDistribution tree_distribution(const TreeShape& tree, const RankAcceptance& acceptance);

}  // namespace specsim::theory
