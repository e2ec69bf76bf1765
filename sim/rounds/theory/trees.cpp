#include "sim/rounds/theory/trees.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace specsim::theory {

std::vector<int> TreeShape::depths() const {
  std::vector<int> depths = {0};
  for (int node = 1; node < size(); ++node) depths.push_back(depths[index_of(parent[index_of(node)])] + 1);
  return depths;
}

int TreeShape::depth() const {
  const std::vector<int> all = depths();
  return *std::max_element(all.begin(), all.end());
}

std::vector<std::vector<int>> TreeShape::children() const {
  std::vector<std::vector<int>> children(index_of(size()));
  for (int node = 1; node < size(); ++node) children[index_of(parent[index_of(node)])].push_back(node);
  return children;
}

int TreeShape::add(int under, int at_rank) {
  parent.push_back(under);
  rank.push_back(at_rank);
  return size() - 1;
}

void check_tree(const TreeShape& tree) {
  SPECSIM_CHECK(tree.size() >= 1 && tree.rank.size() == tree.parent.size(), "{} parents, {} ranks", tree.parent.size(),
                tree.rank.size());
  std::set<std::pair<int, int>> taken;
  for (int node = 1; node < tree.size(); ++node) {
    const int parent = tree.parent[index_of(node)];
    const int rank = tree.rank[index_of(node)];
    SPECSIM_CHECK(parent >= 0 && parent < node, "node {} under {}", node, parent);
    SPECSIM_CHECK(rank >= 0 && taken.emplace(parent, rank).second, "node {} has rank {}, negative or taken", node, rank);
  }
}

TreeShape chain_tree(int draft_length) {
  TreeShape tree;
  for (int depth = 0; depth < draft_length; ++depth) tree.add(depth, 0);
  return tree;
}

void check_acceptance(const RankAcceptance& acceptance) {
  SPECSIM_CHECK(!acceptance.empty(), "no acceptance given");
  for (const std::vector<double>& row : acceptance) {
    math::CompensatedSum sum;
    for (const double share : row) {
      SPECSIM_CHECK(share >= 0.0, "acceptance = {}", share);
      sum += share;
    }
    SPECSIM_CHECK(sum.value() <= 1.0 + 1e-9, "acceptances of one depth sum to {}", sum.value());
  }
}

double acceptance_of(const RankAcceptance& acceptance, int depth, int rank) {
  const std::vector<double>& row = acceptance[std::min(index_of(depth), acceptance.size() - 1)];
  return index_of(rank) < row.size() ? row[index_of(rank)] : 0.0;
}

RoundDistribution distribution_of_tails(const std::vector<double>& tails) {
  RoundDistribution distribution;
  for (std::size_t j = 0; j < tails.size(); ++j)
    distribution.accepted.push_back(tails[j] - (j + 1 < tails.size() ? tails[j + 1] : 0.0));
  return distribution;
}

RoundDistribution tree_distribution(const TreeShape& tree, const RankAcceptance& acceptance) {
  check_tree(tree);
  check_acceptance(acceptance);
  const std::vector<int> depths = tree.depths();
  std::vector<double> reach = {1.0};  // [node]: probability that the accepted path contains it
  std::vector<double> tails(index_of(tree.depth()) + 1, 0.0);
  tails[0] = 1.0;
  for (int node = 1; node < tree.size(); ++node) {
    const int depth = depths[index_of(node)];
    reach.push_back(reach[index_of(tree.parent[index_of(node)])] *
                    acceptance_of(acceptance, depth - 1, tree.rank[index_of(node)]));
    tails[index_of(depth)] += reach.back();
  }
  return distribution_of_tails(tails);
}

}  // namespace specsim::theory
