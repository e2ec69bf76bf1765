// Shapes of token trees, and the best one for a budget. Acceptance by rank as in sim/rounds/theory/trees.h.
#pragma once

#include "sim/rounds/theory/trees.h"

#include <vector>

namespace specsim::theory {

// Each path lists the ranks from the root to a node (Medusa's choices). Every prefix of a path must be listed too; order is free.
[[nodiscard]] TreeShape tree_from_paths(const std::vector<std::vector<int>>& paths);
// Every node at depth i has branching[i] children (SpecInfer's expansion).
[[nodiscard]] TreeShape uniform_tree(const std::vector<int>& branching);

// Mean tokens that a round of the tree emits: 1 + the sum over all nodes but the root.
[[nodiscard]] double tree_tokens(const TreeShape& tree, const RankAcceptance& acceptance);

struct BestTree {
  TreeShape tree;
  double tokens = 1.0;  // expected, per round
};
// The best tree of exactly `size` nodes, root included, no deeper than `depth`, whose siblings take the first ranks: every
// ordered tree is tried (Catalan numbers: 1,430 at 9 nodes). size 1..12.
[[nodiscard]] BestTree best_tree_exhaustive(const RankAcceptance& acceptance, int size, int depth);
// The same for rows that never rise with the rank, at any size: a node's product is then at most its parent's and its elder
// sibling's, so the best tree is the `size` nodes of largest product. O(size log size).
[[nodiscard]] BestTree best_tree_greedy(const RankAcceptance& acceptance, int size, int depth);
// Expected tokens of the best tree by Sequoia's programme (Chen et al. 2024, arXiv 2402.12374): [depth][size], depth 0..depth
// and size 0..size (entry 0 unused), for one acceptance vector, rising or not, over trees of exactly that size and at most that
// depth (-infinity: there is none).
// O(depth size^2 ranks).
[[nodiscard]] std::vector<std::vector<double>> sequoia_programme(const std::vector<double>& acceptance, int size, int depth);

// Accuracy by rank from cumulative top-k accuracies, head by head (Medusa, Cai et al. 2024, arXiv 2401.10774). The heads are
// assumed to be right independently of one another, which real heads are not.
[[nodiscard]] RankAcceptance rank_acceptance(const std::vector<std::vector<double>>& cumulative_by_head);

// Lookahead decoding with `candidates` n-grams of draft_length guessed tokens, each right with alpha at every position,
// independently (Fu et al. 2024, arXiv 2402.02057): P(accepted >= i) = 1 - (1 - alpha^i)^candidates, so mean emitted is
// draft_length + 1 - sum of (1 - alpha^i)^candidates.
[[nodiscard]] RoundDistribution lookahead_distribution(double alpha, int draft_length, int candidates);

}  // namespace specsim::theory
