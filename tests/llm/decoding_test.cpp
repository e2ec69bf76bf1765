// Speculative decoding with real models emits the same tokens as decoding without speculation: token for token at temperature 0,
// in distribution above it.
#include "sim/lab/llm/block_proposer.h"
#include "sim/lab/llm/decoder.h"
#include "sim/rounds/verify/positions_in_turn.h"
#include "tests/llm/remembered.h"
#include "tests/support/block_mutants.h"
#include "tests/support/mutants.h"
#include "tests/support/tails.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>

namespace specsim::decoding_test {

using specsim::tests::block_method;
using specsim::tests::BlockMethod;
using specsim::tests::held_out;
using specsim::tests::Pair;
using specsim::tests::Remembered;
using specsim::tests::repeating;

namespace {

std::unique_ptr<verify::BlockRule> shipped(const std::string& name) {
  Diagnostics diagnostics;
  const verify::VerifierEntry& entry = *verify::verifiers().find(name);
  return std::make_unique<verify::PositionsInTurn>(
      entry.make(config::read_arguments({}, entry.info.parameters, {}, name, diagnostics)));
}

// Rounds until `count` tokens are emitted; the first `count` of them.
std::vector<Token> emitted(llm::Decoder& decoder, const std::vector<Token>& prompt, std::size_t count, std::uint64_t id = 0) {
  decoder.start({{prompt, id}});
  while (decoder.texts()[0].tokens.size() < prompt.size() + count) decoder.round();
  const std::vector<Token>& text = decoder.texts()[0].tokens;
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
          text.begin() + static_cast<std::ptrdiff_t>(prompt.size() + count)};
}

// p of a G-test of the first `tokens` emitted tokens' joint distribution and the target's; cells with expectation below 25 are
// pooled.
double joint_distribution_p(Remembered& target, llm::Proposer& drafter, const verify::BlockRule& rule,
                            const std::vector<Token>& prompt, int draft_length, std::uint64_t runs, std::uint64_t seed,
                            std::size_t tokens = 2) {
  REQUIRE(static_cast<double>(tokens) * std::log2(target.vocab()) <= 64.0);
  const auto cell_after = [&](std::uint64_t cell, Token token) { return cell * target.vocab() + token; };
  llm::Decoder decoder(target, &drafter, rule, draft_length, rng::make_key(seed, rng::hash_text("joint distribution")));
  std::unordered_map<std::uint64_t, std::uint64_t> seen;
  for (std::uint64_t run = 0; run < runs; ++run) {
    std::uint64_t cell = 0;
    for (const Token token : emitted(decoder, prompt, tokens, run)) cell = cell_after(cell, token);
    ++seen[cell];
  }
  const double n = static_cast<double>(runs);
  double g = 0.0;
  double pooled = n;
  double pooled_expected = 0.0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    g += count > 0.0 ? 2.0 * count * std::log(count / expected) : 0.0;
    ++cells;
  };
  std::vector<Token> text = prompt;
  const std::function<void(std::uint64_t, double)> split = [&](std::uint64_t cell, double expected) {
    constexpr double kLeast = 25.0;
    if (expected < kLeast) {  // too rare for its own cell, whatever follows
      pooled_expected += expected;
    } else if (text.size() == prompt.size() + tokens) {
      const auto found = seen.find(cell);
      const double count = found == seen.end() ? 0.0 : static_cast<double>(found->second);
      add(count, expected);
      pooled -= count;
    } else {
      const std::vector<double>& distribution = target.distribution_of(text);
      for (Token token = 0; token < distribution.size(); ++token) {
        text.push_back(token);
        split(cell_after(cell, token), expected * distribution[token]);
        text.pop_back();
      }
    }
  };
  split(0, n);
  if (pooled > 0.0 && pooled_expected == 0.0) return 0.0;  // tokens that the target never emits
  if (pooled_expected > 0.0) add(pooled, pooled_expected);
  REQUIRE(cells >= 8);
  return tests::chi_square_tail(std::max(g, 0.0), cells - 1);
}

double joint_distribution_p(Remembered& target, Remembered& draft, const verify::BlockRule& rule,
                            const std::vector<Token>& prompt, bool argmax, int draft_length, std::uint64_t runs,
                            std::uint64_t seed) {
  llm::ModelProposer drafter(draft, argmax);
  return joint_distribution_p(target, drafter, rule, prompt, draft_length, runs, seed);
}

// The mutant of tests/support learns the draft's distribution from rejected(), which is not called here before a full acceptance.
class BonusFromDraft final : public tests::TokenLikeRule {
 public:
  [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& distributions, Token x) const override {
    drafted_.assign(distributions.drafted.begin(), distributions.drafted.end());
    return TokenLikeRule::odds(distributions, x);
  }
  void bonus(std::span<const double> /*target*/, std::span<double> weights) const override {
    std::copy(drafted_.begin(), drafted_.end(), weights.begin());
  }

 private:
  mutable std::vector<double> drafted_;
};

// A lossless chain verifier draws the target's distribution; at least one of the prompts must detect every mutant of the rule.
void check_joint_distribution(const math::Sampling& sampling, std::uint64_t runs, std::size_t prompts) {
  constexpr double kLevel = 1e-6;
  const Pair pair;
  const std::vector<llm::Prompt> all = held_out(pair.target_weights->config);
  std::map<std::string, double> least;
  for (std::size_t i = 0; i < prompts; ++i) {
    llm::ModelDistributions target_distributions(*pair.target_model, sampling, 1);
    llm::ModelDistributions draft_distributions(*pair.draft_model, sampling, 1);
    // The two tokens' distributions are those after the prompt and after one more token. In a lossless rule no later distribution
    // can change them, so later ones are not worth a pass of the model for each of a vocabulary's pairs.
    Remembered target(target_distributions, {.deepest = all[i].tokens.size() + 1});
    Remembered draft(draft_distributions, {.deepest = all[i].tokens.size() + 1});
    for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
      if (!entry.make || !entry.lossless || entry.demands.one_hot_target) continue;  // rules of blocks do not decode here
      for (const bool argmax : {false, true}) {
        if (entry.demands.argmax_draft && !argmax) continue;
        CAPTURE(entry.info.name, argmax, i);
        CHECK(joint_distribution_p(target, draft, *shipped(entry.info.name), all[i].tokens, argmax, argmax ? 1 : 2, runs, 11) >
              kLevel);
      }
    }
    const auto try_mutant = [&](const std::string& name, const verify::BlockRule& rule) {
      // At draft length 1 the second token is the bonus.
      const double p = joint_distribution_p(target, draft, rule, all[i].tokens, false, 1, runs / 2, 12);
      const auto [place, fresh] = least.try_emplace(name, p);
      place->second = std::min(place->second, p);
    };
    try_mutant("bonus token from the draft", verify::PositionsInTurn(std::make_unique<BonusFromDraft>()));
    for (const tests::Mutant& mutant : tests::mutants()) {
      // Leaks of 1 % need more runs than these; mistakes in the simulator's loop do not affect this one.
      if (!mutant.loop && mutant.caught_by == tests::Figure::output_distribution && mutant.name.find("1 %") == std::string::npos)
        try_mutant(mutant.name, verify::PositionsInTurn(mutant.rule()));
    }
  }
  REQUIRE(least.size() >= 5);
  for (const auto& [name, p] : least) {
    CAPTURE(name, p);
    CHECK(p < kLevel);
  }
}

// The pair's distributions of the few likeliest tokens after a repetitive prompt. A round costs some 30 us; rows of a whole
// vocabulary took twenty times as long, a third of it for pages that the allocator returned and fetched again each round.
struct ShortDistributions {
  // The prompt without its `last` tokens.
  explicit ShortDistributions(std::size_t last = 0) : left_out(last) {}

  static constexpr math::Sampling kSampling{.temperature = 1.0, .top_k = 4};
  std::size_t left_out;
  Pair pair;
  tests::Alphabet alphabet{96};
  std::vector<Token> text = repeating(held_out(pair.target_weights->config)[0].tokens);
  std::vector<Token> prompt = alphabet.numbers(std::span(text).first(text.size() - left_out));
  llm::ModelDistributions target_distributions{*pair.target_model, kSampling, 1};
  llm::ModelDistributions draft_distributions{*pair.draft_model, kSampling, 1};
  Remembered::Reading reading{.deepest = prompt.size() + 1, .alphabet = &alphabet};  // as in check_joint_distribution
  Remembered target{target_distributions, reading};
  Remembered draft{draft_distributions, reading};
};

// Whether a wrong rule is detected, with p_of(runs, seed). Few runs detect most; a residual that is not normalised moves 1.5 % of
// the distribution.
bool seen(const std::function<double(std::uint64_t, std::uint64_t)>& p_of) {
  constexpr double kLevel = 1e-6;
  return p_of(4'000, 22) < kLevel || p_of(40'000, 23) < kLevel;
}

// Rules for blocks and trees, with drafters of the registry; a rule's mutant must be detected wherever the rule is used.
void check_trees(std::uint64_t runs) {
  constexpr double kLevel = 1e-6;
  ShortDistributions whole;
  ShortDistributions midst(4);  // ends within repeated text, so that its continuation, which drafters find in the text, is likely
  struct Case {
    const char* kind;
    const char* parameters;
    const char* verifier;
    bool chain = false;
  };
  for (const Case& one :
       {Case{"tree_static", "{branching: [1, 1]}", "block", true},
        {"tree_static", "{branching: [2, 2]}", "multi_draft_recursive"},
        {"tree_static", "{branching: [3, 1]}", "traversal"},
        {"tree_static", "{branching: [6, 2], siblings: without_replacement}", "without_replacement"},  // only 4 tokens
        {"tree_static", "{paths: [[0], [2], [0, 1]], siblings: top_k}", "tree_point_mass"},
        {"tree_sequoia", "{budget: 6, depth: 3, acceptance: [0.5, 0.3]}", "multi_draft_recursive"},
        {"tree_dynamic", "{depth: 2, width: 2, nodes: 4}", "tree_point_mass"},
        {"prompt_lookup", "{draft_length: 2}", "tree_point_mass", true},
        {"suffix", "{draft_length: 2}", "tree_point_mass", true}}) {
    const BlockMethod method = block_method(one.kind, one.parameters, one.verifier);
    const draft::BlockDrafter::Shape& shape = method.drafter->shape();
    ShortDistributions& distributions = shape.reads_text ? midst : whole;
    llm::BlockProposer drafter(*method.drafter, distributions.target, shape.reads_text ? nullptr : &distributions.draft);
    const auto p_of = [&](const verify::BlockRule& rule, std::uint64_t count, std::uint64_t seed) {
      return joint_distribution_p(distributions.target, drafter, rule, distributions.prompt, shape.draft_length, count, seed);
    };
    const auto is_seen = [&](const verify::BlockRule& rule) {
      return seen([&](std::uint64_t count, std::uint64_t seed) { return p_of(rule, count, seed); });
    };
    CAPTURE(one.kind, one.parameters, one.verifier);
    CHECK(p_of(*method.rule, runs, 41) > kLevel);
    CHECK(is_seen(tests::StepRule([](verify::Block&, int, const auto& children, Token&) { return children[0]; })));
    int tried = 0;
    for (const tests::BlockMutant& mutant : tests::block_mutants()) {
      // An only child counts as the first, whichever child matched.
      if (mutant.verifier != one.verifier || (one.chain && mutant.mistake == "goes down to the first child whichever matched"))
        continue;
      CAPTURE(mutant.mistake);
      CHECK(is_seen(*mutant.make()));
      ++tried;
    }
    CHECK(tried >= 2);
  }
}

}  // namespace

TEST_CASE("the first two tokens have the target's joint distribution with rules that judge the chain as a block",
          "[llm][blocks][stat]") {
  constexpr double kLevel = 1e-6;
  constexpr std::uint64_t kRuns = 20'000;
  ShortDistributions distributions;
  const auto p_of = [&](const verify::BlockRule& rule, std::uint64_t runs, std::uint64_t seed) {
    return joint_distribution_p(distributions.target, distributions.draft, rule, distributions.prompt, false, 2, runs, seed);
  };
  std::vector<std::string> tried;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    const std::vector<tokens::Siblings>& trees = entry.demands.trees;
    const bool chains = trees.empty() || std::find(trees.begin(), trees.end(), tokens::Siblings::independent) != trees.end();
    // Rules that judge positions as well decode by positions.
    if (!entry.make_block || entry.make || !entry.lossless || !chains || entry.demands.one_hot_target ||
        entry.demands.argmax_draft || entry.demands.vocab < static_cast<int>(distributions.target.vocab()))
      continue;
    Diagnostics diagnostics;
    const auto rule = entry.make_block(config::read_arguments({}, entry.info.parameters, {}, entry.info.name, diagnostics));
    if (!diagnostics.empty()) continue;  // it wants parameters
    tried.push_back(entry.info.name);
    CAPTURE(entry.info.name);
    CHECK(p_of(*rule, kRuns, 21) > kLevel);
  }
  CHECK(tried.size() >= 4);

  int killed = 0;
  for (const tests::BlockMutant& mutant : tests::block_mutants()) {
    if (std::find(tried.begin(), tried.end(), mutant.verifier) == tried.end()) continue;
    // An only child has no siblings, so mistakes in siblings do not apply.
    const bool alike = mutant.mistake == "every sibling is judged against the whole target" ||
                       mutant.mistake == "the residual is not normalised" || mutant.mistake == "rho is 1" ||
                       mutant.mistake == "rho is the number of siblings";
    if (alike) continue;
    CAPTURE(mutant.verifier, mutant.mistake);
    CHECK(seen([&](std::uint64_t runs, std::uint64_t seed) { return p_of(*mutant.make(), runs, seed); }));
    ++killed;
  }
  CHECK(killed == 9);  // four mistakes of block, three of traversal, the final token of the other two
}

TEST_CASE("the first two tokens have the target's joint distribution with an early exit", "[llm][stat]") {
  constexpr double kLevel = 1e-6;
  constexpr std::uint64_t kRuns = 20'000;
  const math::Sampling sampling{.temperature = 1.0, .top_k = 6};
  const Pair pair;
  const std::vector<Token> prompt = repeating(held_out(pair.target_weights->config)[0].tokens);
  llm::ModelDistributions target_distributions(*pair.target_model, sampling, 1);
  Remembered target(target_distributions);
  const auto early = make_cpu_model(pair.target_weights, 2, tests::one_thread());
  llm::ModelDistributions early_distributions(*early, sampling, 1);
  Remembered exit(early_distributions);
  llm::ModelProposer by_exit(exit, false);
  CHECK(joint_distribution_p(target, by_exit, *shipped("token"), prompt, 2, kRuns, 31) > kLevel);
  CHECK(joint_distribution_p(target, by_exit, verify::PositionsInTurn(std::make_unique<BonusFromDraft>()), prompt, 1, kRuns, 32) <
        kLevel);
  // Every mutant that moves the distribution of the first token, down to a leak of 1 %: tokens that the target never emits.
  std::size_t killed = 0;
  for (const tests::Mutant& mutant : tests::mutants()) {
    if (mutant.loop || mutant.caught_by != tests::Figure::output_distribution) continue;
    CAPTURE(mutant.name);
    CHECK(joint_distribution_p(target, by_exit, verify::PositionsInTurn(mutant.rule()), prompt, 2, kRuns, 33) < kLevel);
    ++killed;
  }
  CHECK(killed == 6);
}

TEST_CASE("the first two tokens have the target's joint distribution with trees and drafters of the registry",
          "[llm][blocks][stat]") {
  check_trees(20'000);
}

TEST_CASE("the first five tokens have the target's joint distribution with Lookahead's window and pool", "[llm][blocks][stat]") {
  constexpr double kLevel = 1e-6;
  constexpr std::uint64_t kRuns = 1'000;
  constexpr std::size_t kTokens = 5;  // the first rounds fill the window and guess nothing
  const Pair pair;
  const std::vector<Token> prompt = repeating(held_out(pair.target_weights->config)[0].tokens);
  llm::ModelDistributions target_distributions(*pair.target_model, {.temperature = 1.0, .top_k = 2}, 1);
  Remembered target(target_distributions);
  const BlockMethod method = block_method("lookahead", "{window: 2, ngram: 3, guesses: 3}", "tree_point_mass");
  llm::BlockProposer drafter(*method.drafter, target, nullptr);
  const int length = method.drafter->shape().draft_length;
  CHECK(joint_distribution_p(target, drafter, *method.rule, prompt, length, kRuns, 51, kTokens) > kLevel);
  const tests::StepRule first_child([](verify::Block&, int, const std::vector<int>& children, Token&) { return children[0]; });
  CHECK(joint_distribution_p(target, drafter, first_child, prompt, length, kRuns, 52, kTokens) < kLevel);
  const auto soft = std::find_if(tests::block_mutants().begin(), tests::block_mutants().end(), [](const auto& mutant) {
    return mutant.mistake == "a chosen token is judged with its soft draft probability";
  });
  CHECK(joint_distribution_p(target, drafter, *soft->make(), prompt, length, kRuns, 53, kTokens) < kLevel);
}

TEST_CASE("greedy output over trees is greedy plain output, and costs fewer rounds", "[llm][blocks]") {
  const Pair pair;
  const std::vector<llm::Prompt> prompts = held_out(pair.target_weights->config);
  const math::Sampling greedy{.temperature = 0.0};
  llm::ModelDistributions target(*pair.target_model, greedy, 1);
  llm::ModelDistributions draft(*pair.draft_model, greedy, 1);
  llm::ModelDistributions warm_draft(*pair.draft_model, {.temperature = 1.0}, 1);
  const rng::Key key = rng::make_key(1, 1);
  const auto rule = shipped("greedy");
  llm::Decoder plain(target, nullptr, *rule, 0, key);
  constexpr std::size_t kTokens = 24;
  const auto rounds_of = [&](const char* kind, const char* parameters, llm::DistributionSource* source) {
    const BlockMethod method = block_method(kind, parameters, "tree_point_mass");
    llm::BlockProposer drafter(*method.drafter, target, source);
    llm::Decoder decoder(target, &drafter, *method.rule, method.drafter->shape().draft_length, key);
    std::size_t rounds = 0;
    for (std::size_t i = 0; i < prompts.size(); i += 10) {
      const std::vector<Token> expected = emitted(plain, prompts[i].tokens, kTokens);
      decoder.start({{prompts[i].tokens, 0}});
      const std::vector<Token>& text = decoder.texts()[0].tokens;
      for (; text.size() < prompts[i].tokens.size() + kTokens; ++rounds) decoder.round();
      const auto begin = text.begin() + static_cast<std::ptrdiff_t>(prompts[i].tokens.size());
      CHECK(std::vector<Token>(begin, begin + kTokens) == expected);
    }
    return rounds;
  };
  const std::size_t chain = rounds_of("tree_static", "{branching: [1, 1, 1], siblings: top_k}", &warm_draft);
  const std::size_t tree = rounds_of("tree_static", "{branching: [3, 2, 1], siblings: top_k}", &warm_draft);
  const std::size_t dynamic = rounds_of("tree_dynamic", "{depth: 3, width: 3, nodes: 12}", &warm_draft);
  const std::size_t wide = rounds_of("tree_dynamic", "{}", &warm_draft);  // 256 candidates, in a context of as many
  const std::size_t lookahead = rounds_of("lookahead", "{window: 6, ngram: 4, guesses: 6}", nullptr);
  const std::size_t pool = rounds_of("lookahead", "{window: 0, ngram: 4, guesses: 6}", nullptr);
  CAPTURE(chain, tree, dynamic, wide, lookahead, pool);
  CHECK(tree < chain);
  CHECK(wide < dynamic);
  CHECK(dynamic < chain);
  CHECK(lookahead < pool);
  CHECK(pool < 10 * kTokens);
}

TEST_CASE("greedy speculative output is greedy plain output over 100 prompts", "[llm]") {
  const Pair pair;
  const std::vector<llm::Prompt> prompts = held_out(pair.target_weights->config);
  REQUIRE(prompts.size() == 100);
  const math::Sampling greedy{.temperature = 0.0};
  llm::ModelDistributions target(*pair.target_model, greedy, 1);
  llm::ModelDistributions draft(*pair.draft_model, greedy, 1);
  const auto early = make_cpu_model(pair.target_weights, 2, tests::one_thread());
  llm::ModelDistributions early_distributions(*early, greedy, 1);
  llm::ModelProposer by_model(draft, true);
  llm::ModelProposer by_early_exit(early_distributions, true);
  const BlockMethod lookup_method = block_method("prompt_lookup", "{draft_length: 5}", "tree_point_mass");
  llm::BlockProposer by_lookup(*lookup_method.drafter, target, nullptr);
  const rng::Key key = rng::make_key(1, 1);
  const auto rule = shipped("greedy");
  constexpr std::size_t kTokens = 16;
  llm::Decoder plain(target, nullptr, *rule, 0, key);
  llm::Decoder model(target, &by_model, *rule, 4, key);
  llm::Decoder exit(target, &by_early_exit, *rule, 3, key);
  llm::Decoder lookup(target, &by_lookup, *lookup_method.rule, 5, key);
  // The forward pass gives the same bits for any number of rows, so not even near ties may differ; they are counted.
  std::size_t different = 0;
  std::size_t near_ties = 0;
  constexpr float kNear = 1e-4F;  // error of the forward pass at most, relative to the larger logit
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<Token> expected = emitted(plain, prompts[i].tokens, kTokens);
    if (emitted(model, prompts[i].tokens, kTokens) != expected) ++different;
    std::vector<Token> text = prompts[i].tokens;
    text.insert(text.end(), expected.begin(), expected.end());
    const auto cache = pair.target_model->make_cache(1, text.size());
    std::vector<float> logits = tests::all_logits(*pair.target_model, *cache, text);
    for (std::size_t row = prompts[i].tokens.size() - 1; row + 1 < text.size(); ++row) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * target.vocab());
      std::nth_element(first, first + 1, first + static_cast<std::ptrdiff_t>(target.vocab()), std::greater<>());
      const float largest = std::max(first[0], first[1]);
      if (std::abs(first[0] - first[1]) < kNear * std::abs(largest)) ++near_ties;
    }
    if (i % 10 != 0) continue;
    if (emitted(exit, prompts[i].tokens, kTokens) != expected) ++different;
    if (emitted(lookup, prompts[i].tokens, kTokens) != expected) ++different;
  }
  CHECK(different == 0);
  WARN(near_ties << " of " << prompts.size() * kTokens << " greedy choices have two logits within 1e-4 of each other");
}

TEST_CASE("a draft that is never right and a rule that always accepts are seen at temperature 0", "[llm]") {
  class AcceptAll final : public verify::PositionRule {
   public:
    [[nodiscard]] verify::Odds odds(const verify::PositionDistributions& /*distributions*/, Token /*x*/) const override {
      return {1.0, 1.0};
    }
    void rejected(const verify::PositionDistributions& distributions, std::span<double> weights) const override {
      bonus(distributions.target, weights);
    }
  };
  const Pair pair;
  const std::vector<llm::Prompt> prompts = held_out(pair.target_weights->config);
  llm::ModelDistributions target(*pair.target_model, {.temperature = 0.0}, 1);
  llm::ModelDistributions draft(*pair.draft_model, {.temperature = 0.0}, 1);
  llm::ModelProposer drafter(draft, true);
  const verify::PositionsInTurn wrong(std::make_unique<AcceptAll>());
  const auto right = shipped("greedy");
  llm::Decoder plain(target, nullptr, *right, 0, {});
  llm::Decoder mistaken(target, &drafter, wrong, 4, {});
  std::size_t different = 0;
  for (std::size_t i = 0; i < 10; ++i)
    if (emitted(plain, prompts[i].tokens, 16) != emitted(mistaken, prompts[i].tokens, 16)) ++different;
  CHECK(different >= 5);
}

TEST_CASE("a sequence decodes equally alone and in a batch", "[llm]") {
  const Pair pair;
  const std::vector<llm::Prompt> prompts = held_out(pair.target_weights->config);
  const auto rule = shipped("token");
  const auto run = [&](const std::vector<std::size_t>& which) {
    llm::ModelDistributions target(*pair.target_model, {}, which.size());
    llm::ModelDistributions draft(*pair.draft_model, {}, which.size());
    llm::ModelProposer drafter(draft, false);
    llm::Decoder decoder(target, &drafter, *rule, 4, rng::make_key(3, 3));
    std::vector<llm::Text> texts;
    for (const std::size_t i : which) texts.push_back({prompts[i].tokens, i});
    decoder.start(texts);
    for (int round = 0; round < 6; ++round) decoder.round();
    return decoder.texts();
  };
  const std::vector<llm::Text> together = run({0, 1, 2});
  for (const std::size_t i : {0U, 1U, 2U}) CHECK(run({i})[0].tokens == together[i].tokens);
  CHECK(together[0].tokens != together[2].tokens);
}

TEST_CASE("the first two tokens have the target's joint distribution", "[llm][stat]") {
  check_joint_distribution({.temperature = 1.0, .top_k = 6}, 20'000, 1);
}

TEST_CASE("the first two tokens have the target's joint distribution, over a million runs of three prompts, the whole vocabulary",
          "[.slow]") {
  check_joint_distribution({.temperature = 1.0}, 1'000'000, 3);
}

TEST_CASE(
    "the first two tokens have the target's joint distribution, over a million runs of each rule for blocks and trees, of 4 "
    "tokens",
    "[.slow]") {
  check_trees(1'000'000);
}

}  // namespace specsim::decoding_test
