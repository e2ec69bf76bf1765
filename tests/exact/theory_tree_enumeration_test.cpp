#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/foundation/base/check.h"
#include "sim/rounds/theory/bounds.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/tree_enumeration.h"
#include "tests/support/best_trees.h"
#include "tests/support/enumeration.h"
#include "tests/support/random_automata.h"

namespace specsim::theory_tree_enumeration_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

struct Case {
  std::string name;
  TreeRule rule;
  TreeSampling sampling;
};

const std::vector<Case> cases = {
    {"recursive, with replacement", TreeRule::recursive, TreeSampling::with_replacement},
    {"recursive, without replacement", TreeRule::recursive, TreeSampling::without_replacement},
    {"recursive, top", TreeRule::recursive, TreeSampling::top},
    {"K-SEQ", TreeRule::kseq, TreeSampling::with_replacement},
    {"traversal, with replacement", TreeRule::traversal, TreeSampling::with_replacement},
    {"traversal, without replacement", TreeRule::traversal, TreeSampling::without_replacement},
    {"traversal, top", TreeRule::traversal, TreeSampling::top},
};

// Trees of at most 6 drafted nodes, bushy, deep and lopsided.
std::vector<TreeShape> some_trees() {
  return {chain_tree(0),
          chain_tree(3),
          uniform_tree({3}),
          uniform_tree({2, 2}),
          tree_from_paths({{0}, {0, 0}, {1}, {0, 0, 0}}),
          tree_from_paths({{0}, {1}, {1, 0}, {1, 1}, {2}}),
          tree_from_paths({{0}, {0, 1}, {0, 0}, {0, 0, 0}, {0, 1, 0}})};
}

Enumeration enumerate_tree(const Automaton& automaton, const TreeRound& round, int tokens) {
  return enumerate_rounds(
      automaton, [&](int state) { return tree_outcomes(automaton, round, state); }, round.tree.depth(), tokens);
}

}  // namespace

TEST_CASE("trees: every lossless rule restores the joint distribution over round boundaries", "[theory][tree_enumeration]") {
  Numbers numbers(2505);
  const std::vector<TreeShape> trees = some_trees();
  for (int trial = 0; trial < 42; ++trial) {
    const int vocab = 2 + trial % 2;
    const Automaton automaton = random_automaton(numbers, vocab, 1 + trial % 3, trial % 2 == 0 ? 1 : 3, trial % 3 == 0);
    const TreeShape& tree = trees[static_cast<std::size_t>(trial) % trees.size()];
    for (const Case& one : cases) {
      INFO("trial " << trial << ", " << one.name << ", nodes " << tree.size());
      const Enumeration result = enumerate_tree(automaton, {one.rule, one.sampling, tree}, tree.depth() + 2);
      REQUIRE(result.largest_difference < 1e-12);
      double mass = 0.0;
      for (const double share : result.accepted.accepted) mass += share;
      REQUIRE(std::abs(mass - 1.0) < 1e-12);
    }
  }
}

TEST_CASE("trees: only the joint distribution detects the mutant that draws the final token from the target",
          "[theory][tree_enumeration]") {
  const Automaton automaton = one_state({0.2, 0.3, 0.5}, {0.5, 0.3, 0.2});
  const TreeShape tree = uniform_tree({2, 1});
  for (const Case& one : cases) {
    const TreeRound round{one.rule, one.sampling, tree};
    const auto mutant = [&](int state) {
      std::map<std::vector<int>, double> accepted;
      for (RoundOutcome outcome : tree_outcomes(automaton, round, state)) {
        outcome.emitted.pop_back();
        accepted[outcome.emitted] += outcome.probability;
      }
      std::vector<RoundOutcome> outcomes;
      for (const auto& [path, probability] : accepted) {
        for (int x = 0; x < automaton.vocab; ++x) {
          RoundOutcome outcome{path, 0, probability * automaton.target[0][static_cast<std::size_t>(x)]};
          outcome.emitted.push_back(x);
          outcomes.push_back(outcome);
        }
      }
      return outcomes;
    };
    INFO(one.name);
    const Enumeration wrong = enumerate_rounds(automaton, mutant, tree.depth(), 2);
    CHECK(wrong.largest_difference > 1e-3);
    CHECK(std::abs(wrong.expected_emitted - enumerate_tree(automaton, round, 2).expected_emitted) < 1e-14);
  }
}

TEST_CASE("trees: chains are the token and the block rule, one level is the node's rule", "[theory][tree_enumeration]") {
  Numbers numbers(6);
  for (int trial = 0; trial < 30; ++trial) {
    const int vocab = 2 + trial % 3;
    const int length = 1 + trial % 3;
    const Automaton automaton = random_automaton(numbers, vocab, 1 + trial % 2, 1, trial % 3 == 0);
    const auto same = [&](const std::vector<RoundOutcome>& tree, const std::vector<RoundOutcome>& chain) {
      std::map<std::vector<int>, double> difference;
      for (const RoundOutcome& outcome : tree) difference[outcome.emitted] += outcome.probability;
      for (const RoundOutcome& outcome : chain) difference[outcome.emitted] -= outcome.probability;
      return std::all_of(difference.begin(), difference.end(), [](const auto& entry) { return std::abs(entry.second) < 1e-13; });
    };
    const TreeShape chain = chain_tree(length);
    const auto sampled = TreeSampling::with_replacement;
    REQUIRE(same(tree_outcomes(automaton, {TreeRule::recursive, sampled, chain}, 0),
                 round_outcomes(automaton, {Rule::token, length, Drafting::sampled}, 0)));
    REQUIRE(same(tree_outcomes(automaton, {TreeRule::kseq, sampled, chain}, 0),
                 round_outcomes(automaton, {Rule::token, length, Drafting::sampled}, 0)));
    REQUIRE(same(tree_outcomes(automaton, {TreeRule::traversal, sampled, chain}, 0),
                 round_outcomes(automaton, {Rule::block, length, Drafting::sampled}, 0)));
    REQUIRE(same(tree_outcomes(automaton, {TreeRule::recursive, TreeSampling::top, chain}, 0),
                 round_outcomes(automaton, {Rule::token, length, Drafting::argmax}, 0)));
    // One level of three drafts.
    const auto alpha_of = [&](TreeRule rule, TreeSampling sampling) {
      double alpha = 0.0;
      for (const RoundOutcome& outcome : tree_outcomes(automaton, {rule, sampling, uniform_tree({3})}, 0))
        alpha += outcome.emitted.size() == 2 ? outcome.probability : 0.0;
      return alpha;
    };
    const auto& target = automaton.target[0];
    const auto& draft = automaton.draft[0][0];
    const auto judged = [](const MultiDraftJudgement& judgement) { return judgement.judgement.alpha(); };
    REQUIRE(std::abs(alpha_of(TreeRule::recursive, sampled) - judged(judge_recursive(target, draft, 3))) < 1e-12);
    REQUIRE(std::abs(alpha_of(TreeRule::kseq, sampled) - judged(judge_kseq(target, draft, 3))) < 1e-12);
    REQUIRE(std::abs(alpha_of(TreeRule::recursive, TreeSampling::without_replacement) -
                     judged(judge_without_replacement(target, draft, 3))) < 1e-12);
    REQUIRE(std::abs(alpha_of(TreeRule::recursive, TreeSampling::top) - judged(judge_top_ranked(target, draft, 3))) < 1e-12);
    // With one position there is nothing to gain from going leaf to root.
    REQUIRE(std::abs(alpha_of(TreeRule::traversal, sampled) - judged(judge_recursive(target, draft, 3))) < 1e-12);
  }
}

TEST_CASE("trees: products of rank acceptances give the distribution of accepted if distributions do not depend on the text",
          "[theory][tree_enumeration][trees]") {
  Numbers numbers(7);
  for (int trial = 0; trial < 20; ++trial) {
    const Automaton automaton = one_state(numbers.distribution(3, trial % 2 == 0), numbers.distribution(3, trial % 3 == 0));
    const auto& target = automaton.target[0];
    const auto& draft = automaton.draft[0][0];
    for (const TreeShape& tree : some_trees()) {
      for (const auto& [sampling, judgement] :
           {std::pair{TreeSampling::with_replacement, judge_recursive(target, draft, 4)},
            std::pair{TreeSampling::without_replacement, judge_without_replacement(target, draft, 4)},
            std::pair{TreeSampling::top, judge_top_ranked(target, draft, 4)}}) {
        const Enumeration walked = enumerate_tree(automaton, {TreeRule::recursive, sampling, tree}, 1);
        const RoundDistribution distribution = tree_distribution(tree, {judgement.by_rank});
        REQUIRE(distribution.accepted.size() == walked.accepted.accepted.size());
        for (std::size_t j = 0; j < distribution.accepted.size(); ++j)
          REQUIRE(std::abs(distribution.accepted[j] - walked.accepted.accepted[j]) < 1e-12);
        REQUIRE(std::abs(tree_tokens(tree, {judgement.by_rank}) - walked.expected_emitted) < 1e-12);
      }
    }
  }
}

TEST_CASE("trees: traversal accepts at least as much as rejection from the root, on 10,000 pairs",
          "[theory][tree_enumeration][orders]") {
  Numbers numbers(10);
  const std::vector<TreeShape> trees = {uniform_tree({2, 1}), tree_from_paths({{0}, {0, 0}, {1}}),
                                        tree_from_paths({{0}, {0, 0}, {0, 1}})};
  int better = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const Automaton automaton = random_automaton(numbers, 2 + trial % 2, 1 + trial % 2, 1, trial % 3 == 0);
    const TreeShape& tree = trees[static_cast<std::size_t>(trial) % trees.size()];
    const TreeSampling sampling =
        std::vector{TreeSampling::with_replacement, TreeSampling::without_replacement}[static_cast<std::size_t>(trial / 3) % 2];
    const auto tokens = [&](TreeRule rule) {
      double mean = 0.0;
      for (const RoundOutcome& outcome : tree_outcomes(automaton, {rule, sampling, tree}, automaton.start))
        mean += outcome.probability * static_cast<double>(outcome.emitted.size());
      return mean;
    };
    const double traversal = tokens(TreeRule::traversal);
    const double recursive = tokens(TreeRule::recursive);
    INFO("trial " << trial << " " << traversal << " " << recursive);
    REQUIRE(traversal >= recursive - 1e-12);
    better += traversal > recursive + 1e-9 ? 1 : 0;
  }
  CHECK(better > 1000);
}

TEST_CASE("trees: enumeration refuses what it cannot do", "[theory][tree_enumeration]") {
  const Automaton pair = first_pair();
  CHECK_THROWS_AS(tree_outcomes(pair, {TreeRule::kseq, TreeSampling::without_replacement, uniform_tree({2})}, 0),
                  InvariantBroken);
  CHECK_THROWS_AS(tree_outcomes(pair, {TreeRule::recursive, TreeSampling::top, chain_tree(40)}, 0), InvariantBroken);
  CHECK_THROWS_AS(tree_outcomes(pair, {TreeRule::recursive, TreeSampling::top, chain_tree(1)}, 1), InvariantBroken);
}

}  // namespace specsim::theory_tree_enumeration_test
