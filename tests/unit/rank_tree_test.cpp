// The best tree for acceptance by depth and rank, and the table's own context process.
#include "sim/rounds/draft/rank_tree.h"
#include "tests/support/best_trees.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

namespace specsim::rank_tree_test {

namespace {

double expected_tokens(const tokens::Tree& tree, const std::vector<std::vector<double>>& acceptance) {
  theory::TreeShape own;
  for (std::size_t node = 1; node < tree.nodes.size(); ++node) own.add(tree.nodes[node].parent, tree.nodes[node].rank);
  return theory::tree_tokens(own, acceptance);
}

}  // namespace

TEST_CASE("rank_tree is the best of all trees of its size, if no row rises with the rank", "[draft][rank_tree]") {
  std::mt19937 random(7);
  const auto unit = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (int i = 0; i < 40; ++i) {
    std::vector<std::vector<double>> acceptance(3);
    for (std::vector<double>& row : acceptance) {
      row.resize(1 + random() % 4);
      double left = 1.0;
      for (double& x : row) left -= x = left * unit();
      std::sort(row.rbegin(), row.rend());
    }
    for (const int nodes : {1, 3, 6, 8}) {
      const tokens::Tree tree = draft::rank_tree(acceptance, nodes, draft::Ranks::first);
      double level = 1.0;
      double all = 0.0;
      for (const std::vector<double>& row : acceptance) all += level *= static_cast<double>(row.size());
      CHECK(tree.drafted() == static_cast<int>(std::min(all, static_cast<double>(nodes))));
      CHECK(expected_tokens(tree, acceptance) ==
            Approx(theory::best_tree_exhaustive(acceptance, tree.drafted() + 1, 3).tokens).epsilon(1e-13));
    }
  }
}

TEST_CASE("rank_tree of chosen tokens is the best if rows rise with the rank", "[draft][rank_tree]") {
  // Mutant: elder siblings are included, which gives 1.825.
  const std::vector<std::vector<double>> rising = {{0.2, 0.5, 0.1}, {0.05, 0.6}};
  CHECK(expected_tokens(draft::rank_tree(rising, 4, draft::Ranks::any), rising) ==
        Approx(1.0 + 0.5 + 0.5 * 0.6 + 0.2 + 0.2 * 0.6).epsilon(1e-13));
  // Any tree of a table equals a tree of the sorted table with other ranks.
  std::mt19937 random(8);
  const auto unit = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (int i = 0; i < 40; ++i) {
    std::vector<std::vector<double>> acceptance(3);
    for (std::vector<double>& row : acceptance) {
      row.resize(1 + random() % 4);
      double left = 1.0;
      for (double& x : row) left -= x = left * unit();
      std::shuffle(row.begin(), row.end(), random);
    }
    std::vector<std::vector<double>> sorted = acceptance;
    for (std::vector<double>& row : sorted) std::sort(row.rbegin(), row.rend());
    for (const int nodes : {1, 3, 6, 8}) {
      const tokens::Tree tree = draft::rank_tree(acceptance, nodes, draft::Ranks::any);
      CHECK(expected_tokens(tree, acceptance) ==
            Approx(theory::best_tree_exhaustive(sorted, tree.drafted() + 1, 3).tokens).epsilon(1e-13));
    }
  }
}

TEST_CASE("rank_tree reports the errors in a table", "[draft][rank_tree]") {
  CHECK(draft::acceptance_mistake({{0.5, 0.3}, {1.0}}).empty());
  CHECK(draft::acceptance_mistake({}) == "is empty, allowed: a list for each depth");
  CHECK(draft::acceptance_mistake({{0.5}, {0.6, 0.5}}) ==
        "at depth 2 of 2 sums to 1.1, allowed: one rank or more that sum to at most 1");
}

}  // namespace specsim::rank_tree_test
