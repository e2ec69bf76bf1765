// Published trees and their published acceptance.
#pragma once

#include "tests/support/best_trees.h"

#include <iterator>
#include <vector>

namespace specsim::tests {

// Cumulative accuracy of the top 1 to 5, head by head (FasterDecoding/Medusa, assets/medusa_acc.csv).
inline const std::vector<std::vector<double>> medusa_heads_7b = {{0.5604, 0.6717, 0.7271, 0.7599, 0.7799},
                                                                 {0.3164, 0.4236, 0.4851, 0.5282, 0.5625},
                                                                 {0.2010, 0.2879, 0.3475, 0.3834, 0.4169},
                                                                 {0.1474, 0.2250, 0.2737, 0.3109, 0.3397}};
inline const std::vector<std::vector<double>> medusa_heads_33b = {{0.6046, 0.7162, 0.7649, 0.7983, 0.8223},
                                                                  {0.3558, 0.4690, 0.5287, 0.5692, 0.5961},
                                                                  {0.2246, 0.3197, 0.3785, 0.4210, 0.4462},
                                                                  {0.1596, 0.2488, 0.3073, 0.3480, 0.3755}};

// Accuracies beyond the published top 5 of a head: none, or at most the fifth's.
inline theory::RankAcceptance medusa_heads(const std::vector<std::vector<double>>& cumulative, bool rest) {
  theory::RankAcceptance heads = theory::rank_acceptance(cumulative);
  if (rest) {
    for (std::vector<double>& row : heads) row.resize(10, row.back());
  }
  return heads;
}

// mc_sim_7b_63 of the Medusa repository: how many children the node at each path has; siblings take the first ranks.
inline theory::TreeShape medusa_tree() {
  theory::TreeShape tree;
  const auto grow = [&](int under, int children) {
    std::vector<int> nodes;
    for (int rank = 0; rank < children; ++rank) nodes.push_back(tree.add(under, rank));
    return nodes;
  };
  const std::vector<int> first = grow(0, 10);
  const std::vector<int> under_first[] = {grow(first[0], 10), grow(first[1], 7), grow(first[2], 3), grow(first[3], 2),
                                          grow(first[4], 1),  grow(first[5], 1), grow(first[6], 1), grow(first[7], 1),
                                          grow(first[8], 1),  grow(first[9], 1)};
  const std::vector<int> deepest = grow(under_first[0][0], 10);
  const int third[] = {3, 2, 1, 1, 1, 1, 1};  // under the ranks 1 to 7 of the first node
  for (std::size_t i = 0; i < std::size(third); ++i) grow(under_first[0][i + 1], third[i]);
  grow(under_first[1][0], 2);
  grow(under_first[2][0], 1);
  grow(deepest[0], 2);
  return tree;
}

// Acceptance by rank (arXiv 2402.12374, appendix E: Llama3-70B by Llama3-8B, CNN).
inline const std::vector<double> sequoia_vector = {
    0.7732, 0.1039, 0.0402, 0.0206, 0.0128, 0.0081, 0.0064, 0.0043, 0.0035, 0.0026, 0.0025, 0.0021, 0.0016, 0.0014, 0.001, 0.001,
    0.001,  0.0007, 0.0007, 0.0006, 0.0007, 0.0006, 0.0004, 0.0004, 0.0005, 0.0006, 0.0004, 0.0003, 0.0002, 0.0004, 0.0001};

}  // namespace specsim::tests
