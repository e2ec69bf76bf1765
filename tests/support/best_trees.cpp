#include "tests/support/best_trees.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/index.h"
#include "sim/foundation/math/series.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace specsim::theory {

TreeShape tree_from_paths(const std::vector<std::vector<int>>& paths) {
  std::vector<std::vector<int>> sorted = paths;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });
  std::vector<std::vector<int>> known = {{}};
  TreeShape tree;
  for (const std::vector<int>& path : sorted) {
    SPECSIM_CHECK(!path.empty(), "the root needs no path");
    const auto parent = std::find(known.begin(), known.end(), std::vector<int>(path.begin(), path.end() - 1));
    SPECSIM_CHECK(parent != known.end(), "a path of {} ranks without its parent", path.size());
    tree.add(static_cast<int>(parent - known.begin()), path.back());
    known.push_back(path);
  }
  check_tree(tree);
  return tree;
}

TreeShape uniform_tree(const std::vector<int>& branching) {
  TreeShape tree;
  int level = 0;  // first node of the last level
  for (const int children : branching) {
    SPECSIM_CHECK(children >= 1, "{} children", children);
    const int end = tree.size();
    for (int node = level; node < end; ++node) {
      for (int rank = 0; rank < children; ++rank) tree.add(node, rank);
    }
    level = end;
  }
  return tree;
}

double tree_tokens(const TreeShape& tree, const RankAcceptance& acceptance) {
  return tree_distribution(tree, acceptance).mean_emitted();
}

BestTree best_tree_exhaustive(const RankAcceptance& acceptance, int size, int depth) {
  check_acceptance(acceptance);
  SPECSIM_CHECK(size >= 1 && size <= 12 && depth >= 0, "size = {}, depth = {}", size, depth);
  BestTree best;
  best.tokens = -std::numeric_limits<double>::infinity();
  TreeShape tree;
  // Nodes are added in depth-first order: the next one goes under the last node or one of its ancestors.
  const std::function<void(int)> grow = [&](int last) {
    if (tree.size() == size) {
      const double tokens = tree_tokens(tree, acceptance);
      if (tokens > best.tokens) best = {tree, tokens};
      return;
    }
    const std::vector<int> depths = tree.depths();
    for (int under = last; under >= 0; under = tree.parent[index_of(under)]) {
      if (depths[index_of(under)] == depth) continue;
      const auto siblings = std::count(tree.parent.begin(), tree.parent.end(), under);
      grow(tree.add(under, static_cast<int>(siblings)));
      tree.parent.pop_back();
      tree.rank.pop_back();
    }
  };
  grow(0);
  SPECSIM_CHECK(std::isfinite(best.tokens), "no tree of {} nodes has depth {}", size, depth);
  return best;
}

BestTree best_tree_greedy(const RankAcceptance& acceptance, int size, int depth) {
  check_acceptance(acceptance);
  SPECSIM_CHECK(size >= 1 && depth >= (size > 1 ? 1 : 0), "size = {}, depth = {}", size, depth);
  for (const std::vector<double>& row : acceptance)
    SPECSIM_CHECK(std::is_sorted(row.rbegin(), row.rend()), "acceptance rises with the rank");
  struct Candidate {
    double product;
    int under;
    int rank;
    int depth;
    // A queue's top is its largest: the likeliest, then the shallowest, then the eldest.
    bool operator<(const Candidate& other) const {
      return std::tie(product, other.depth, other.rank, other.under) < std::tie(other.product, depth, rank, under);
    }
  };
  BestTree best;
  std::vector<double> reach = {1.0};
  math::CompensatedSum tokens(1.0);
  std::priority_queue<Candidate> open;
  const auto offer = [&](int under, int rank, int level) {
    if (level <= depth) open.push({reach[index_of(under)] * acceptance_of(acceptance, level - 1, rank), under, rank, level});
  };
  offer(0, 0, 1);
  while (best.tree.size() < size) {
    const Candidate next = open.top();
    open.pop();
    const int node = best.tree.add(next.under, next.rank);
    reach.push_back(next.product);
    tokens += next.product;
    offer(node, 0, next.depth + 1);
    offer(next.under, next.rank + 1, next.depth);
  }
  best.tokens = tokens.value();
  return best;
}

std::vector<std::vector<double>> sequoia_programme(const std::vector<double>& acceptance, int size, int depth) {
  check_acceptance({acceptance});
  SPECSIM_CHECK(size >= 1 && depth >= 0, "size = {}, depth = {}", size, depth);
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const std::size_t sizes = index_of(size) + 1;
  std::vector<std::vector<double>> best(index_of(depth) + 1, std::vector<double>(sizes, kNone));
  best[0][1] = 1.0;
  for (std::size_t level = 1; level < best.size(); ++level) {
    // forest[n]: the most that the children of ranks >= the current one add with n nodes; built from the last rank to the first.
    // Ranks beyond the vector add nothing, so any number of nodes may hang there.
    std::vector<double> forest(sizes, 0.0);
    for (std::size_t rank = acceptance.size(); rank-- > 0;) {
      std::vector<double> wider(sizes, kNone);
      wider[0] = 0.0;
      for (std::size_t child = 1; child < sizes; ++child) {
        if (best[level - 1][child] == kNone) continue;
        const double gain = acceptance[rank] * best[level - 1][child];
        for (std::size_t rest = 0; child + rest < sizes; ++rest) {
          wider[child + rest] = std::max(wider[child + rest], gain + forest[rest]);
        }
      }
      forest = std::move(wider);
    }
    for (std::size_t nodes = 1; nodes < sizes; ++nodes) best[level][nodes] = 1.0 + forest[nodes - 1];
  }
  return best;
}

RankAcceptance rank_acceptance(const std::vector<std::vector<double>>& cumulative_by_head) {
  RankAcceptance acceptance;
  for (const std::vector<double>& cumulative : cumulative_by_head) {
    auto& row = acceptance.emplace_back();
    double before = 0.0;
    for (const double share : cumulative) {
      SPECSIM_CHECK(share >= before && share <= 1.0, "cumulative accuracy {} after {}", share, before);
      row.push_back(share - before);
      before = share;
    }
  }
  return acceptance;
}

RoundDistribution lookahead_distribution(double alpha, int draft_length, int candidates) {
  SPECSIM_CHECK(alpha >= 0.0 && alpha <= 1.0, "alpha = {}", alpha);
  SPECSIM_CHECK(draft_length >= 0 && candidates >= 0, "draft_length = {}, candidates = {}", draft_length, candidates);
  std::vector<double> tails = {1.0};
  for (int i = 1; i <= draft_length; ++i) tails.push_back(1.0 - std::pow(1.0 - std::pow(alpha, i), candidates));
  return distribution_of_tails(tails);
}

}  // namespace specsim::theory
