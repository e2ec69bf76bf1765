#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <set>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/multi_draft.h"
#include "tests/support/best_trees.h"
#include "tests/support/random_automata.h"
#include "tests/support/sanitizers.h"

namespace specsim::theory_trees_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

// A distribution over the ranks and "none"; in descending order unless it may rise.
std::vector<double> vector_of(Numbers& numbers, int ranks, bool falling) {
  std::vector<double> shares = numbers.distribution(ranks + 1, false);
  shares.pop_back();
  if (falling) std::sort(shares.rbegin(), shares.rend());
  return shares;
}

// The accepted path, rank by rank, as a walk: P(it ends at each depth).
void walk(const TreeShape& tree, const RankAcceptance& acceptance, int node, int depth, double reach, std::vector<double>& ends) {
  double on = 0.0;
  const auto& row = acceptance[std::min(static_cast<std::size_t>(depth), acceptance.size() - 1)];
  for (int child = node + 1; child < tree.size(); ++child) {
    const auto rank = static_cast<std::size_t>(tree.rank[static_cast<std::size_t>(child)]);
    if (tree.parent[static_cast<std::size_t>(child)] != node || rank >= row.size()) continue;
    on += row[rank];
    walk(tree, acceptance, child, depth + 1, reach * row[rank], ends);
  }
  ends[static_cast<std::size_t>(depth)] += reach * (1.0 - on);
}

}  // namespace

TEST_CASE("trees are read from paths in any order, and broken ones refused", "[theory][trees]") {
  const TreeShape tree = tree_from_paths({{1, 0}, {0}, {1}, {0, 2}});
  CHECK(tree.parent == std::vector<int>{-1, 0, 0, 1, 2});
  CHECK(tree.rank == std::vector<int>{-1, 0, 1, 2, 0});
  CHECK(tree.depth() == 2);
  CHECK(chain_tree(3).parent == std::vector<int>{-1, 0, 1, 2});
  CHECK(uniform_tree({2, 3}).size() == 9);
  CHECK_THROWS_AS(tree_from_paths({{0, 0}}), InvariantBroken);
  CHECK_THROWS_AS(tree_from_paths({{0}, {0}}), InvariantBroken);
  CHECK_THROWS_AS(tree_from_paths({{}}), InvariantBroken);
  CHECK_THROWS_AS(tree_from_paths({{-1}}), InvariantBroken);
  CHECK_THROWS_AS(uniform_tree({0}), InvariantBroken);
  TreeShape cyclic = tree;
  cyclic.parent[1] = 3;
  CHECK_THROWS_AS(check_tree(cyclic), InvariantBroken);
}

TEST_CASE("distribution of accepted on any tree equals the walk down, and a chain's the product of its positions",
          "[theory][trees]") {
  Numbers numbers(13);
  for (int trial = 0; trial < 100; ++trial) {
    TreeShape tree;
    std::set<std::pair<int, int>> taken;
    while (tree.size() < 2 + trial % 9) {
      const int under = numbers.below(tree.size());
      const int rank = numbers.below(4);
      if (taken.emplace(under, rank).second) tree.add(under, rank);
    }
    RankAcceptance acceptance;
    for (int depth = 0; depth < 1 + trial % 3; ++depth) acceptance.push_back(vector_of(numbers, 1 + trial % 4, false));
    const RoundDistribution distribution = tree_distribution(tree, acceptance);
    std::vector<double> ends(static_cast<std::size_t>(tree.depth()) + 1, 0.0);
    walk(tree, acceptance, 0, 0, 1.0, ends);
    for (std::size_t j = 0; j < ends.size(); ++j) REQUIRE(std::abs(distribution.accepted[j] - ends[j]) < 1e-14);
    REQUIRE(std::abs(distribution.mean_emitted() - tree_tokens(tree, acceptance)) < 1e-13);
  }
  const std::vector<double> alphas = {0.79, 0.74, 0.72, 0.73, 0.67};
  RankAcceptance chain;
  for (const double alpha : alphas) chain.push_back({alpha});
  CHECK(std::abs(tree_tokens(chain_tree(5), chain) - tokens_per_round(alphas)) < 1e-15);
  CHECK(std::abs(tree_tokens(chain_tree(5), {{0.7}}) - tokens_per_round(0.7, 5)) < 1e-15);
  CHECK_THROWS_AS(tree_tokens(chain_tree(1), {{0.7, 0.4}}), InvariantBroken);
  CHECK_THROWS_AS(tree_tokens(chain_tree(1), {}), InvariantBroken);
}

TEST_CASE("best trees: programme, greedy choice and exhaustive search agree up to 9 nodes", "[theory][trees]") {
  Numbers numbers(2402);
  for (int trial = 0; trial < 12; ++trial) {
    const bool falling = trial % 2 == 0;
    const std::vector<double> vector = vector_of(numbers, 1 + trial % 5, falling);
    const auto programme = sequoia_programme(vector, 9, 5);
    for (int size = 1; size <= 9; ++size) {
      for (const int depth : {1, 2, 3, 5}) {
        INFO("trial " << trial << " size " << size << " depth " << depth);
        const BestTree exhaustive = best_tree_exhaustive({vector}, size, depth);
        REQUIRE(exhaustive.tree.size() == size);
        REQUIRE(exhaustive.tree.depth() <= depth);
        REQUIRE(std::abs(tree_tokens(exhaustive.tree, {vector}) - exhaustive.tokens) < 1e-14);
        REQUIRE(std::abs(programme[static_cast<std::size_t>(depth)][static_cast<std::size_t>(size)] - exhaustive.tokens) < 1e-13);
        if (!falling) continue;
        const BestTree greedy = best_tree_greedy({vector}, size, depth);
        REQUIRE(std::abs(greedy.tokens - exhaustive.tokens) < 1e-13);
        REQUIRE(std::abs(tree_tokens(greedy.tree, {vector}) - greedy.tokens) < 1e-13);
        REQUIRE(greedy.tree.depth() <= depth);
        // The best tree at a budget is never worse than the best chain at it.
        REQUIRE(greedy.tokens >= tree_tokens(chain_tree(std::min(size - 1, depth)), {vector}) - 1e-14);
      }
    }
  }
  // Heads with a separate accuracy at each depth.
  for (int trial = 0; trial < 10; ++trial) {
    const RankAcceptance heads = {vector_of(numbers, 3, true), vector_of(numbers, 4, true), vector_of(numbers, 2, true)};
    for (int size = 2; size <= 8; ++size) {
      REQUIRE(std::abs(best_tree_greedy(heads, size, 4).tokens - best_tree_exhaustive(heads, size, 4).tokens) < 1e-13);
    }
  }
  CHECK_THROWS_AS(best_tree_greedy({{0.1, 0.5}}, 4, 2), InvariantBroken);
  CHECK_THROWS_AS(best_tree_exhaustive({{0.5}}, 3, 0), InvariantBroken);
}

TEST_CASE("the best tree at a budget is never worse than the best chain, on 10,000 pairs", "[theory][trees][orders]") {
  Numbers numbers(14);
  int better = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const int vocab = 2 + trial % 7;
    const std::vector<double> target = numbers.distribution(vocab, trial % 2 == 0);
    const std::vector<double> draft = numbers.distribution(vocab, trial % 3 == 0);
    const std::vector<double> vector =
        (trial % 5 == 0 ? judge_top_ranked(target, draft, 3) : judge_recursive(target, draft, 3)).by_rank;
    const double chain = tree_tokens(chain_tree(6), {vector});
    const double tree = sequoia_programme(vector, 7, 6)[6][7];
    REQUIRE(tree >= chain - 1e-13);
    better += tree > chain + 1e-6 ? 1 : 0;
  }
  CHECK(better > 5000);
}

TEST_CASE("Catalan many trees are searched", "[theory][trees]") {
  // If only the last of `size - 1` ranks is accepted, with probability 1, only the star that contains it is best: the search must
  // try all trees.
  std::vector<double> last(8, 0.0);
  last.back() = 1.0;
  const BestTree star = best_tree_exhaustive({last}, 9, 8);
  CHECK(star.tokens == 2.0);
  CHECK(star.tree.parent == std::vector<int>{-1, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(best_tree_exhaustive({{1.0}}, 9, 8).tree.parent == chain_tree(8).parent);
}

TEST_CASE("Sequoia's published vectors: programme equals greedy at budget 512, in time", "[theory][trees][published]") {
  // arXiv 2402.12374, appendix E, Llama3-70B by Llama3-8B; made descending, which moves the published tail by at most 2e-4 per
  // entry.
  std::vector<double> vector = {0.7732, 0.1039, 0.0402, 0.0206, 0.0128, 0.0081, 0.0064, 0.0043, 0.0035, 0.0026, 0.0025,
                                0.0021, 0.0016, 0.0014, 0.001,  0.001,  0.001,  0.0007, 0.0007, 0.0006, 0.0007, 0.0006,
                                0.0004, 0.0004, 0.0005, 0.0006, 0.0004, 0.0003, 0.0002, 0.0004, 0.0001};
  CHECK(std::abs(std::accumulate(vector.begin(), vector.end(), 0.0) - 0.9928) < 1e-12);
  const std::clock_t start = std::clock();
  const auto published = sequoia_programme(vector, 512, 32);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  INFO("seconds " << seconds);
  CHECK((seconds < 5.0 || tests::kSanitized));
  std::sort(vector.rbegin(), vector.rend());
  const auto falling = sequoia_programme(vector, 512, 32);
  for (const int size : {2, 16, 64, 128, 512}) {
    for (const int depth : {1, 6, 10, 32}) {
      const double tokens = falling[static_cast<std::size_t>(depth)][static_cast<std::size_t>(size)];
      CHECK(std::abs(best_tree_greedy({vector}, size, depth).tokens - tokens) < 1e-10);
      CHECK(std::abs(published[static_cast<std::size_t>(depth)][static_cast<std::size_t>(size)] - tokens) < 2e-3);
    }
  }
}

TEST_CASE("Medusa's heads: ranks from cumulative accuracies, its tree under independence", "[theory][trees][published]") {
  // assets/medusa_acc.csv of the Medusa repository, Vicuna 7B, top-1 to top-5 of heads 0 to 3.
  const RankAcceptance heads = rank_acceptance({{0.56, 0.672, 0.727, 0.76, 0.78},
                                                {0.316, 0.424, 0.485, 0.528, 0.5625},
                                                {0.201, 0.288, 0.348, 0.383, 0.417},
                                                {0.147, 0.225, 0.274, 0.311, 0.34}});
  CHECK(std::abs(heads[0][1] - 0.112) < 1e-15);
  // Chains of the first ranks, by hand.
  CHECK(std::abs(tree_tokens(chain_tree(4), heads) - (1.0 + 0.56 * (1.0 + 0.316 * (1.0 + 0.201 * (1.0 + 0.147))))) < 1e-15);
  CHECK_THROWS_AS(rank_acceptance({{0.5, 0.4}}), InvariantBroken);
  CHECK_THROWS_AS(rank_acceptance({{0.5, 1.1}}), InvariantBroken);
}

TEST_CASE("Lookahead: b independent candidates, against every outcome of their guesses", "[theory][trees]") {
  for (const double alpha : {0.0, 0.4, 0.75, 1.0}) {
    for (const int candidates : {1, 2, 3}) {
      constexpr int length = 3;
      const RoundDistribution distribution = lookahead_distribution(alpha, length, candidates);
      // Each candidate's guesses right or wrong: 2^(3 b) outcomes.
      double mean = 1.0;
      for (int outcome = 0; outcome < 1 << (length * candidates); ++outcome) {
        double probability = 1.0;
        int longest = 0;
        for (int b = 0; b < candidates; ++b) {
          int right = 0;
          bool open = true;
          for (int i = 0; i < length; ++i) {
            const bool hit = ((outcome >> (b * length + i)) & 1) != 0;
            probability *= hit ? alpha : 1.0 - alpha;
            open = open && hit;
            right += open ? 1 : 0;
          }
          longest = std::max(longest, right);
        }
        mean += probability * longest;
      }
      CHECK(std::abs(distribution.mean_emitted() - mean) < 1e-14);
      if (candidates == 1) CHECK(std::abs(mean - tokens_per_round(alpha, length)) < 1e-14);
    }
  }
  CHECK(std::abs(lookahead_distribution(0.5, 4, 0).mean_emitted() - 1.0) < 1e-15);
  CHECK_THROWS_AS(lookahead_distribution(1.5, 4, 1), InvariantBroken);
  CHECK_THROWS_AS(lookahead_distribution(0.5, 4, -1), InvariantBroken);
}

}  // namespace specsim::theory_trees_test
