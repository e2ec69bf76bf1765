#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "sim/rounds/theory/block.h"
#include "sim/rounds/theory/budget_trees.h"
#include "sim/rounds/theory/lossy.h"
#include "sim/rounds/theory/multi_draft.h"
#include "sim/rounds/theory/round_chain.h"
#include "sim/rounds/theory/tree_enumeration.h"
#include "tests/support/best_trees.h"
#include "tests/support/random_automata.h"

namespace specsim::theory_round_chain_test {

using namespace specsim::theory;
using namespace specsim::tests;

namespace {

std::size_t index_of(int value) { return static_cast<std::size_t>(value); }

StateMatrix moves_of(const Automaton& automaton, const std::function<double(int state, int token)>& mass) {
  const int states = automaton.states;
  StateMatrix moves(index_of(states * states), 0.0);
  for (int s = 0; s < states; ++s)
    for (int x = 0; x < automaton.vocab; ++x)
      moves[index_of(s * states + automaton.next[index_of(s * automaton.vocab + x)])] += mass(s, x);
  return moves;
}

StateMatrix target_moves(const Automaton& automaton) {
  return moves_of(automaton, [&](int s, int x) { return automaton.target[index_of(s)][index_of(x)]; });
}

RoundKernel enumerated_kernel(const Automaton& automaton, const TreeRound& round) {
  RoundKernel kernel(automaton.states, round.tree.depth());
  for (int s = 0; s < automaton.states; ++s)
    for (const RoundOutcome& outcome : tree_outcomes(automaton, round, s))
      kernel.at(static_cast<int>(outcome.emitted.size()) - 1, s, outcome.end_state) += outcome.probability;
  return kernel;
}

double difference(const RoundKernel& a, const RoundKernel& b) {
  REQUIRE(a.moves.size() == b.moves.size());
  double largest = 0.0;
  for (std::size_t j = 0; j < a.moves.size(); ++j)
    for (std::size_t i = 0; i < a.moves[j].size(); ++i) largest = std::max(largest, std::abs(a.moves[j][i] - b.moves[j][i]));
  return largest;
}

// Tokens of a run's rounds by every path of (accepted, next state).
void walk_run(const std::vector<RoundKernel>& kernels, const LengthRule* policy, LengthMemory memory, int state, int rounds,
              double probability, double tokens, double& mean, double& square) {
  if (rounds == 0) {
    mean += probability * tokens;
    square += probability * tokens * tokens;
    return;
  }
  RoundKernel kernel = policy != nullptr ? kernels[index_of(memory.length)] : kernels[0];
  for (int j = 0; j <= kernel.draft_length(); ++j)
    for (int next = 0; next < kernel.states; ++next)
      if (const double move = kernel.at(j, state, next); move > 0.0)
        walk_run(kernels, policy, policy != nullptr ? policy->next(memory, kernel.draft_length(), j) : memory, next, rounds - 1,
                 probability * move, tokens + j + 1, mean, square);
}

// Typical acceptance and first-match rules on every drawn tree.
RoundKernel lossy_by_draws(const Automaton& automaton, const TreeShape& tree, TreeSampling sampling,
                           const std::vector<std::vector<double>>& accepts, bool longest) {
  RoundKernel kernel(automaton.states, tree.depth());
  const std::vector<int> depths = tree.depths();
  for (int start = 0; start < automaton.states; ++start) {
    std::vector<int> token(index_of(tree.size()), -1);
    std::vector<int> state(index_of(tree.size()), start);
    const std::function<void(int, double)> draw = [&](int node, double probability) {
      if (node == tree.size()) {
        // By node: probability that the path from the root is accepted.
        std::vector<bool> on(index_of(tree.size()), false);
        on[0] = true;
        int end = 0;
        for (int i = 1; i < tree.size(); ++i) {
          const int parent = tree.parent[index_of(i)];
          if (token[index_of(i)] < 0 || !on[index_of(parent)]) continue;
          if (accepts[index_of(state[index_of(parent)])][index_of(token[index_of(i)])] == 0.0) continue;
          on[index_of(i)] = longest || end == parent;
          if (on[index_of(i)] && depths[index_of(i)] > depths[index_of(end)]) end = i;
        }
        const int last = state[index_of(end)];
        for (int x = 0; x < automaton.vocab; ++x)
          kernel.at(depths[index_of(end)], start, automaton.next[index_of(last * automaton.vocab + x)]) +=
              probability * automaton.target[index_of(last)][index_of(x)];
        return;
      }
      const int parent = tree.parent[index_of(node)];
      std::vector<double> distribution = automaton.draft[0][index_of(state[index_of(parent)])];
      double left = parent > 0 && token[index_of(parent)] < 0 ? 0.0 : 1.0;
      if (left > 0.0 && sampling == TreeSampling::without_replacement) {
        for (int elder = 1; elder < node; ++elder)
          if (tree.parent[index_of(elder)] == parent && token[index_of(elder)] >= 0)
            distribution[index_of(token[index_of(elder)])] = 0.0;
        left = 0.0;
        for (const double share : distribution) left += share;
      }
      if (left == 0.0) {
        token[index_of(node)] = -1;
        draw(node + 1, probability);
        return;
      }
      for (int x = 0; x < automaton.vocab; ++x) {
        if (distribution[index_of(x)] == 0.0) continue;
        token[index_of(node)] = x;
        state[index_of(node)] = automaton.next[index_of(state[index_of(parent)] * automaton.vocab + x)];
        draw(node + 1, probability * distribution[index_of(x)] / left);
      }
    };
    draw(1, 1.0);
  }
  return kernel;
}

}  // namespace

TEST_CASE("walked kernels equal the enumeration of every drafted tree, next states too", "[theory][round_chain]") {
  Numbers numbers(71);
  const std::vector<TreeShape> trees = {chain_tree(3), uniform_tree({2, 1}), tree_from_paths({{0}, {1}, {0, 0}, {0, 1}, {1, 0}})};
  for (int trial = 0; trial < 60; ++trial) {
    const Automaton automaton = random_automaton(numbers, 2 + trial % 2, 1 + trial % 3, 1, trial % 3 == 0);
    const TreeShape& tree = trees[index_of(trial) % trees.size()];
    const TreeSampling sampling = std::vector{TreeSampling::with_replacement, TreeSampling::without_replacement,
                                              TreeSampling::top}[index_of(trial / 3) % 3];
    NodeMoves moves;
    for (int rank = 0; rank < 2; ++rank)
      moves.accept.push_back(moves_of(automaton, [&](int s, int x) {
        const auto& target = automaton.target[index_of(s)];
        const auto& draft = automaton.draft[0][index_of(s)];
        const MultiDraftJudgement judgement = sampling == TreeSampling::with_replacement ? judge_recursive(target, draft, 2)
                                              : sampling == TreeSampling::top            ? judge_top_ranked(target, draft, 2)
                                                                              : judge_without_replacement(target, draft, 2);
        return judgement.by_token[index_of(rank)][index_of(x)];
      }));
    const RoundKernel walked = walked_kernel(tree, automaton.states, {moves}, target_moves(automaton));
    INFO("trial " << trial);
    REQUIRE(difference(walked, enumerated_kernel(automaton, {TreeRule::recursive, sampling, tree})) < 1e-12);
  }
}

TEST_CASE("a chain that stops when the draft is unsure, by hand", "[theory][round_chain]") {
  // Target (1, 2)/3, draft (2, 1)/3: token 0 is accepted with 1/3, token 1 with 1/3, and drafting stops after token 1.
  NodeMoves moves;
  moves.accept = {{2.0 / 3.0}};
  moves.stop = {{1.0 / 3.0}};
  const RoundDistribution distribution = walked_kernel(chain_tree(2), 1, {moves}, {1.0}).distribution(0);
  CHECK(std::abs(distribution.accepted[0] - 1.0 / 3.0) < 1e-15);
  CHECK(std::abs(distribution.accepted[1] - (1.0 / 3.0 + 1.0 / 3.0 * 1.0 / 3.0)) < 1e-15);
  CHECK(std::abs(distribution.accepted[2] - 1.0 / 3.0 * 2.0 / 3.0) < 1e-15);
}

TEST_CASE("a run's moments equal a walk over every path, with policies and without", "[theory][round_chain]") {
  Numbers numbers(72);
  for (int trial = 0; trial < 12; ++trial) {
    const Automaton automaton = random_automaton(numbers, 3, 1 + trial % 2, 1, false);
    std::vector<RoundKernel> kernels;
    for (int length = 0; length <= 3; ++length)
      kernels.push_back(enumerated_kernel(automaton, {TreeRule::recursive, TreeSampling::with_replacement, chain_tree(length)}));
    const std::vector<LengthRule> rules = {additive_rule(2, 2, 1, 3), ratio_tiers_rule({1, 2, 3}, 0.5, 0.7, 0.4),
                                           goodput_rule(0.6, 0.4, 16, {1.0, 1.2, 1.4, 1.6})};
    const std::vector<double> start = numbers.distribution(automaton.states, false);
    for (std::size_t r = 0; r <= rules.size(); ++r) {
      const LengthRule* rule = r < rules.size() ? &rules[r] : nullptr;
      double mean = 0.0;
      double square = 0.0;
      for (int s = 0; s < automaton.states; ++s)
        walk_run(kernels, rule, rule != nullptr ? rule->first : LengthMemory(), s, 4, start[index_of(s)], 0.0, mean, square);
      const auto moments = run_moments(kernels, rule, start, 4);
      REQUIRE(moments.has_value());
      INFO("trial " << trial << " rule " << r);
      REQUIRE(std::abs(moments->emitted - mean) < 1e-12);
      REQUIRE(std::abs(moments->variance - (square - mean * mean)) < 1e-11);
      REQUIRE(std::abs(moments->accepted - (mean - 4.0)) < 1e-12);
    }
  }
}

TEST_CASE("length rules step by step", "[theory][length_policies]") {
  const LengthRule additive = additive_rule(5, 2, 1, 6);
  CHECK(additive.first.length == 5);
  CHECK(additive.next({0.0, 5}, 5, 5).length == 6);
  CHECK(additive.next({0.0, 3}, 3, 2).length == 2);
  CHECK(additive.next({0.0, 1}, 1, 0).length == 1);
  const LengthRule tiers = ratio_tiers_rule({1, 3, 7}, 0.5, 0.8, 0.4);
  CHECK(tiers.first == LengthMemory{0.5 * (0.8 + 0.4), 3});
  CHECK(tiers.next(tiers.first, 3, 3) == LengthMemory{0.6 + 0.5 * (1.0 - 0.6), 3});  // .8 is not above .8
  CHECK(tiers.next({0.7, 3}, 3, 3).length == 7);
  CHECK(tiers.next({0.7, 3}, 3, 3).value == 0.5 * (0.8 + 0.4));
  CHECK(tiers.next(tiers.first, 3, 0).length == 1);
  CHECK(tiers.next({0.4, 7}, 7, 7).length == 7);
  // Times 1, 1.1, 1.2: at alpha .5 the rates are 1, 1.36, 1.46; at alpha .05 they are 1, .955, .877.
  const LengthRule goodput = goodput_rule(0.5, 1.0, 16, {1.0, 1.1, 1.2});
  CHECK(goodput.first == LengthMemory{0.5, 2});
  CHECK(goodput.next(goodput.first, 2, 0) == LengthMemory{0.0, 0});
  CHECK(goodput.next({0.0, 0}, 0, 0) == LengthMemory{0.0, 0, 1});  // a round without drafts gives no information
  CHECK(goodput.next(goodput.first, 2, 1) == LengthMemory{0.5, 2});
}

TEST_CASE("lossy rules on trees equal the walk over every drawn tree", "[theory][lossy]") {
  Numbers numbers(73);
  const std::vector<TreeShape> trees = {uniform_tree({2, 1}), tree_from_paths({{0}, {1}, {0, 0}, {0, 1}, {1, 0}}), chain_tree(2)};
  for (int trial = 0; trial < 36; ++trial) {
    const Automaton automaton = random_automaton(numbers, 3, 1 + trial % 2, 1, trial % 4 == 0);
    const TreeShape& tree = trees[index_of(trial) % trees.size()];
    const TreeSampling sampling = trial % 2 == 0 ? TreeSampling::with_replacement : TreeSampling::without_replacement;
    std::vector<std::vector<double>> typical;
    std::vector<std::vector<double>> top;
    for (const auto& target : automaton.target) {
      typical.push_back(typical_acceptance(target, 0.3, 0.9));
      top.push_back(top_k_acceptance(target, 1));
    }
    INFO("trial " << trial);
    REQUIRE(difference(typical_kernel(automaton, tree, sampling, 0.3, 0.9),
                       lossy_by_draws(automaton, tree, sampling, typical, true)) < 1e-12);
    NodeMoves moves;
    for (int rank = 0; rank < 2; ++rank)
      moves.accept.push_back(moves_of(automaton, [&](int s, int x) {
        return first_accepted(top[index_of(s)], automaton.draft[0][index_of(s)], 2, sampling)[index_of(rank)][index_of(x)];
      }));
    moves.final_token = target_moves(automaton);
    REQUIRE(difference(walked_kernel(tree, automaton.states, {moves}, target_moves(automaton)),
                       lossy_by_draws(automaton, tree, sampling, top, false)) < 1e-12);
  }
}

TEST_CASE("dynamic trees: the likeliest paths, by hand; ranked ones as enumerated", "[theory][chosen_trees]") {
  const Automaton distributions = one_state({0.2, 0.5, 0.3}, {0.6, 0.3, 0.1});
  // Width 2, depth 2: paths 0 (.6), 1 (.3), 00 (.36), 01 (.18), 10 (.18), 11 (.09). Among 4 nodes 01 remains, since 10 comes
  // later.
  const ChosenTree tree = dynamic_tree(distributions, 0, 2, 2, 4);
  CHECK(tree.tree.parent == std::vector<int>{-1, 0, 0, 1, 1});
  CHECK(tree.tokens == std::vector<int>{-1, 0, 1, 0, 1});
  // .2 + .5 at depth 1, then .2 (.2 + .5).
  const RoundDistribution distribution = chosen_kernel(distributions, {}, 2, [&](int) { return tree; }).distribution(0);
  CHECK(std::abs(distribution.tail(1) - 0.7) < 1e-15);
  CHECK(std::abs(distribution.tail(2) - 0.14) < 1e-15);

  Numbers numbers(74);
  for (int trial = 0; trial < 20; ++trial) {
    const Automaton one = one_state(numbers.distribution(4, false), numbers.distribution(4, false));
    const TreeShape shape = tree_from_paths({{0}, {2}, {0, 1}, {2, 0}});
    const RoundKernel guessed = chosen_kernel(one, {}, 2, [&](int state) { return guessed_tree(shape, one, state); });
    REQUIRE(difference(guessed, enumerated_kernel(one, {TreeRule::recursive, TreeSampling::top, shape})) < 1e-12);
  }
}

TEST_CASE("windows of contexts: traversal of a chain is block, and dynamic trees look ahead", "[theory][round_chain]") {
  Numbers numbers(75);
  Automaton distributions = random_automaton(numbers, 3, 2, 1, false);
  const StateMatrix transition = {0.8, 0.2, 0.4, 0.6};
  const std::vector<double> start = {0.5, 0.5};
  std::vector<WeightedPair> pairs;
  for (std::size_t s = 0; s < 2; ++s) pairs.push_back({1.0, distributions.target[s], distributions.draft[0][s]});
  RoundKernel block(2, 2);
  block.moves = block_kernel(block_context(pairs, transition), 2);
  const WindowRounds traversal = window_rounds(distributions, transition, start, 2, [&](const Automaton& path) {
    return enumerated_kernel(path, {TreeRule::traversal, TreeSampling::with_replacement, chain_tree(2)}).distribution(0);
  });
  REQUIRE(traversal.by_state.has_value());  // a position's decision does not depend on later contexts
  for (int s = 0; s < 2; ++s)
    for (std::size_t j = 0; j <= 2; ++j)
      CHECK(std::abs((*traversal.by_state)[index_of(s)].accepted[j] - block.distribution(s).accepted[j]) < 1e-12);
  const auto by_window = run_moments({traversal.kernel}, nullptr, traversal.start, 5);
  const auto by_state = run_moments({block}, nullptr, start, 5);
  CHECK(std::abs(by_window->emitted - by_state->emitted) < 1e-12);
  CHECK(std::abs(by_window->variance - by_state->variance) < 1e-11);

  // Three nodes: if the second position is certain it gets the third node, otherwise the first position gets it.
  distributions.draft[0] = {{0.5, 0.3, 0.2}, {0.9, 0.05, 0.05}};
  const WindowRounds dynamic = window_rounds(distributions, transition, start, 2, [&](const Automaton& path) {
    return chosen_kernel(path, {}, 2, [&](int state) { return dynamic_tree(path, state, 2, 3, 2); }).distribution(0);
  });
  CHECK(!dynamic.by_state.has_value());
  for (int window = 0; window < 4; ++window) {
    double sum = 0.0;
    for (const StateMatrix& moves : dynamic.kernel.moves)
      for (int next = 0; next < 4; ++next) sum += moves[index_of(window * 4 + next)];
    CHECK(std::abs(sum - 1.0) < 1e-14);
  }
}

TEST_CASE("drafts out of the text, by hand", "[theory][chosen_trees]") {
  const TextDraft lookup = prompt_lookup_draft(3, 2, 1);
  const auto of = [](const TextDraft& draft, const std::vector<int>& text) { return draft(text); };
  CHECK(of(lookup, {1, 2, 3, 4, 1, 2}) == std::vector<int>{3, 4, 1});
  CHECK(of(lookup, {2, 5, 1, 2, 3, 1, 2}) == std::vector<int>{3, 1, 2});  // two tokens match before one does
  CHECK(of(lookup, {2, 5, 7, 2}) == std::vector<int>{5, 7, 2});
  CHECK(of(lookup, {1, 2, 3}).empty());
  CHECK(of(lookup, {}).empty());
  const TextDraft suffix = suffix_draft(4, 8, 2.0, 0.1);
  CHECK(of(suffix, {1, 2, 3, 9, 1, 2, 4, 1, 2, 4, 1, 2}) == std::vector<int>{4, 1, 2});  // 4 1 2 came before one place only
  CHECK(of(suffix, {2, 3, 2, 4, 2, 4, 2}) == std::vector<int>{4, 2});
  CHECK(of(suffix_draft(4, 8, 2.0, 0.9), {2, 3, 2, 4, 2, 5, 2}).empty());  // each follows a third of the time
  CHECK(of(suffix_draft(4, 8, 0.5, 0.1), {1, 1}).empty());
}

TEST_CASE("Lookahead over every text and first window, by hand", "[theory][chosen_trees]") {
  // The target counts 0 1 2 3 0 1 ..., whatever came before. With one column and n-grams of 3 the window starts with one token x;
  // the first round leaves x + 1 in level 1. From the second on each round's column is the text's last token, level 1 and the
  // token after level 1, which then becomes level 1.
  Automaton count;
  count.vocab = 4;
  count.states = 4;
  for (int state = 0; state < 4; ++state) {
    for (int token = 0; token < 4; ++token) count.next.push_back((token + 1) % 4);
    count.target.emplace_back(4, 0.0).at(index_of(state)) = 1.0;
  }
  count.draft = {count.target};
  const std::vector<double> start = {1.0, 0.0, 0.0, 0.0};
  // Emitted: 0 1 2 3 in four rounds; columns of rounds 1, 2, 3: (0, x + 1, x + 2), (1, x + 2, x + 3), (2, x + 3, x). Right if x =
  // 0. Round 4 begins with 3, round 5 with 0: then the pool has (0, x + 1, x + 2), and two tokens are accepted if x = 0, none
  // else.
  const Lookahead one = {1, 3, 1, false};
  CHECK(lookahead_moments(count, start, {}, one, 5)->emitted == 5.0);
  CHECK(lookahead_moments(count, start, {}, one, 6)->emitted == 0.25 * 8.0 + 0.75 * 6.0);
  CHECK(std::abs(lookahead_moments(count, start, {}, one, 6)->variance - 0.25 * 0.75 * 4.0) < 1e-14);
  CHECK(lookahead_moments(count, start, {}, one, 6)->accepted == 0.5);
  // With a prompt the first window copies from it.
  CHECK(lookahead_moments(count, start, std::vector<int>{2}, one, 6)->emitted == 6.0);
  CHECK(lookahead_moments(count, start, std::vector<int>{0}, one, 6)->emitted == 8.0);
  // With the text's own n-grams: after 0 1 2 3 0 the pool has (0, 1, 2) whatever x is.
  const Lookahead read = {1, 3, 2, true};
  CHECK(lookahead_moments(count, start, {}, read, 6)->emitted == 8.0);
  CHECK(!lookahead_moments(count, start, {}, {12, 4, 1, false}, 3).has_value());
}

TEST_CASE("rounds over every text: a sure text, and the mean by hand", "[theory][chosen_trees]") {
  // The target alternates 0, 1, 0, 1; lookup copies it once both have been seen.
  Automaton sure;
  sure.vocab = 2;
  sure.states = 2;
  sure.next = {1, 1, 0, 0};
  sure.target = {{1.0, 0.0}, {0.0, 1.0}};
  sure.draft = {{{0.5, 0.5}, {0.5, 0.5}}};
  const std::vector<double> start = {1.0, 0.0};
  const auto copied = text_moments(sure, {}, start, {}, prompt_lookup_draft(2, 1, 1), 5);
  // 0 | 1 | 0 | then 1 0 drafted and 1 added, twice: the last round copies 0 1.
  CHECK(copied->emitted == 1.0 + 1.0 + 1.0 + 3.0 + 3.0);
  CHECK(copied->variance == 0.0);
  // Two tokens, target (p, 1 - p), a draft of one token: round 2 follows one token, round 3 may copy. After "x y" the last token
  // was seen before only if x = y; then it is drafted again.
  const double p = 0.7;
  const Automaton coin = one_state({p, 1.0 - p}, {0.5, 0.5});
  const auto moments = text_moments(coin, {}, std::vector<double>{1.0}, {}, prompt_lookup_draft(1, 1, 1), 3);
  CHECK(std::abs(moments->emitted - (3.0 + p * p * p + (1.0 - p) * (1.0 - p) * (1.0 - p))) < 1e-14);
  // A prompt "0 1 0": the first round drafts 1.
  const std::vector<int> prompt = {0, 1, 0};
  CHECK(std::abs(text_moments(coin, {}, std::vector<double>{1.0}, prompt, prompt_lookup_draft(1, 1, 1), 1)->emitted -
                 (1.0 + (1.0 - p))) < 1e-14);
  // Independent states with equal distributions change nothing.
  Automaton hidden = coin;
  hidden.states = 2;
  hidden.next.assign(4, 0);
  hidden.target.push_back(coin.target[0]);
  hidden.draft[0].push_back(coin.draft[0][0]);
  const auto moved = text_moments(hidden, {0.9, 0.1, 0.5, 0.5}, start, {}, prompt_lookup_draft(1, 1, 1), 3);
  CHECK(std::abs(moved->emitted - moments->emitted) < 1e-14);
  CHECK(std::abs(moved->variance - moments->variance) < 1e-13);
  CHECK(!text_moments(one_state(std::vector<double>(64, 1.0 / 64), std::vector<double>(64, 1.0 / 64)), {},
                      std::vector<double>{1.0}, {}, prompt_lookup_draft(1, 1, 1), 4)
             .has_value());
}

}  // namespace specsim::theory_round_chain_test
