// Drafters: their trees, their matches in a text, and how policies choose lengths.
#include "tests/support/drafters.h"
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "sim/rounds/draft/sequoia.h"
#include "tests/support/cells.h"
#include "tests/support/overlaps.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace specsim::drafters_test {

using specsim::tests::make_blocks;

namespace {

class Text final : public draft::DrafterInput {
 public:
  explicit Text(std::vector<Token> text) : text_(std::move(text)) {}
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock&, int) override { return {}; }
  [[nodiscard]] std::size_t vocab() const override { return size; }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t index) override { return (index * 5 + 2) % size; }
  // A target whose argmax depends on the whole text.
  Prefix end_of_text() override {
    Prefix prefix{1, 0};
    for (const Token token : text_) prefix = after(prefix, token);
    return {prefix.context, 0};
  }
  Prefix after(Prefix prefix, Token token) override {
    return {(prefix.context * 131 + token * 17 + 7) % 10007, prefix.depth + 1};
  }
  [[nodiscard]] Token argmax(Prefix prefix) const { return prefix.context % size; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override {
    std::vector<Token> tokens;
    for (const Prefix& prefix : prefixes) tokens.push_back(argmax(prefix));
    return tokens;
  }
  void write(Token token) { text_.push_back(token); }

  Token size = 5;

 private:
  std::vector<Token> text_;
};

std::vector<Token> found(const std::string& kind, const std::string& parameters, const std::vector<Token>& text) {
  const draft::Blocks made = make_blocks(kind, parameters);
  draft::ChosenBlock block;
  Text input(text);
  made->choose(input, made->start().get(), block);
  if (block.tokens.empty()) return {};
  return {block.tokens.begin() + 1, block.tokens.end()};
}

// Expected tokens of every tree of `size` nodes with its root, on at most `levels` levels below it.
std::vector<double> all_trees(const std::vector<double>& acceptance, int size, int levels);

// The same for every row of children, of the ranks from `rank` on, with `size` nodes in all.
std::vector<double> all_rows(const std::vector<double>& acceptance, std::size_t rank, int size, int levels) {
  if (size == 0) return {0.0};
  std::vector<double> values;
  if (rank == acceptance.size() || levels == 0) return values;
  for (int first = 1; first <= size; ++first)
    for (const double one : all_trees(acceptance, first, levels - 1))
      for (const double rest : all_rows(acceptance, rank + 1, size - first, levels))
        values.push_back(acceptance[rank] * one + rest);
  return values;
}

std::vector<double> all_trees(const std::vector<double>& acceptance, int size, int levels) {
  std::vector<double> values = all_rows(acceptance, 0, size - 1, levels);
  for (double& value : values) value += 1.0;
  return values;
}

double value_of(const tokens::Tree& tree, const std::vector<double>& acceptance) {
  std::vector<double> value(tree.nodes.size(), 1.0);
  for (std::size_t i = 1; i < value.size(); ++i)
    value[i] = value[static_cast<std::size_t>(tree.nodes[i].parent)] * acceptance[static_cast<std::size_t>(tree.nodes[i].rank)];
  return std::accumulate(value.begin(), value.end(), 0.0);
}

}  // namespace

TEST_CASE("Sequoia's programme finds the best of all trees up to 9 nodes") {
  const std::vector<std::vector<double>> acceptances = {
      {0.6, 0.2, 0.1, 0.05}, {0.9, 0.05}, {0.3, 0.25, 0.2, 0.15, 0.1}, {0.5}, {0.2, 0.5, 0.1}};
  int compared = 0;
  for (const std::vector<double>& acceptance : acceptances) {
    const draft::SequoiaProgramme programme(acceptance, 9, 5);
    for (int nodes = 1; nodes <= 9; ++nodes) {
      for (int depth = 1; depth <= 5; ++depth) {
        const std::vector<double> all = all_trees(acceptance, nodes + 1, depth);
        INFO(nodes << " nodes, depth " << depth << ", " << acceptance.size() << " ranks, " << all.size() << " trees");
        if (all.empty()) {
          CHECK(programme.tokens(nodes, depth) == -std::numeric_limits<double>::infinity());
          continue;
        }
        const double best = *std::max_element(all.begin(), all.end());
        CHECK(programme.tokens(nodes, depth) == Approx(best).epsilon(0).margin(1e-13));
        const tokens::Tree tree = programme.tree(nodes, depth);
        CHECK(tree.drafted() == nodes);
        CHECK(tree.height() <= depth);
        CHECK(value_of(tree, acceptance) == Approx(best).epsilon(0).margin(1e-13));
        ++compared;
      }
    }
  }
  CHECK(compared > 150);
}

TEST_CASE("a time table chooses Sequoia's size and depth") {
  // Verification is free up to 4 tokens and expensive beyond, drafting is free: 3 nodes. If drafting is expensive: one level.
  const std::string common = "budget: 16, depth: 6, acceptance: [0.7, 0.2], verify_times: [[1, 1], [4, 1], [5, 3], [17, 9]]";
  CHECK(make_blocks("tree_sequoia", "{" + common + ", draft_time: 0}")->shape().nodes == 3);
  CHECK(make_blocks("tree_sequoia", "{" + common + ", draft_time: 5}")->shape().draft_length == 1);
}

TEST_CASE("trees from branching, paths and parents are the same trees") {
  const auto shape = [](const std::string& parameters) {
    const draft::Blocks made = make_blocks("tree_static", parameters);
    std::vector<int> parents;
    for (const tokens::Tree::Node& node : made->tree()->nodes) parents.push_back(node.parent);
    return parents;
  };
  const std::vector<int> wanted = {-1, 0, 0, 1, 1, 2, 2};
  CHECK(shape("{branching: [2, 2]}") == wanted);
  CHECK(shape("{paths: [[1, 1], [0], [0, 1], [1], [0, 0], [1, 0]]}") == wanted);
  CHECK(shape("{parents: [0, 0, 1, 1, 2, 2]}") == wanted);
  CHECK(shape("{parents: [2, 0, 0, 2, 3, 3]}") == wanted);  // a parent may come after its child
}

TEST_CASE("passes and rows of a tree") {
  const draft::BlockWork whole = make_blocks("tree_static", "{branching: [4, 3, 2, 1]}")->work(64);
  CHECK(whole.pass_rows == std::vector<double>{1, 4, 12, 24});
  CHECK(whole.verified_rows == 65.0);
  CHECK(draft::chain_block(5)->work(2).pass_rows == std::vector<double>{1, 1});
  CHECK(draft::chain_block(5)->work(0).pass_rows.empty());
  CHECK(make_blocks("medusa", "{branching: [3, 2]}")->work(9).pass_rows == std::vector<double>{1});
  CHECK(make_blocks("parallel", "{draft_length: 4}")->work(4).pass_rows == std::vector<double>{4});
  CHECK(make_blocks("lookahead", "{window: 5, ngram: 4, guesses: 3}")->work(9).verified_rows == 5.0 * 3.0 + 9.0);
  CHECK(make_blocks("lookahead", "{window: 0, ngram: 4, guesses: 3}")->work(9).verified_rows == 1.0 + 9.0);
  CHECK(make_blocks("tree_dynamic", "{depth: 3, width: 4, nodes: 10}")->work(10).pass_rows == std::vector<double>{1, 4, 4});
}

TEST_CASE("Medusa's tree for head accuracies: the most expected tokens of all with as many nodes") {
  const draft::Blocks made = make_blocks("medusa", "{nodes: 4, accuracies: [[0.6, 0.2, 0.1], [0.5, 0.3]]}");
  std::vector<std::pair<int, int>> nodes;  // parent, rank
  for (const tokens::Tree::Node& node : made->tree()->nodes) nodes.emplace_back(node.parent, node.rank);
  CHECK(nodes == std::vector<std::pair<int, int>>{{-1, 0}, {0, 0}, {0, 1}, {1, 0}, {1, 1}});  // .6, .2, .3, .18
}

TEST_CASE("what drafters find in a text") {
  const std::vector<Token> text = {1, 2, 3, 4, 9, 1, 2, 5, 6, 7, 1, 2};
  CHECK(found("prompt_lookup", "{draft_length: 3}", text) == std::vector<Token>{3, 4, 9});  // the first of two places
  CHECK(found("prompt_lookup", "{draft_length: 3}", {1, 2, 3}).empty());
  CHECK(found("prompt_lookup", "{draft_length: 4, min_ngram: 2}", {5, 5, 5}) == std::vector<Token>{5});
  CHECK(found("lookahead", "{window: 0, ngram: 3, guesses: 2}", text) ==
        std::vector<Token>{5, 3, 6, 4});                                                     // newest first, level by level
  CHECK(found("suffix", "{draft_length: 3, factor: 1}", text) == std::vector<Token>{3, 4});  // match of 2, ties to the earliest
  CHECK(found("suffix", "{draft_length: 8, least: 0.6}", text).empty());                     // 1/2 each
  CHECK(found("suffix", "{draft_length: 8}", {4, 4, 8}).empty());
  // Every end is scored: after 7 came 1 and 2, a third of its places each, after [5, 7] twice 1, half of its places: 1 in all.
  const std::vector<Token> ends = {5, 7, 1, 1, 7, 2, 5, 7};
  CHECK(found("suffix_decoding", "{}", ends) == std::vector<Token>{1, 1});
  CHECK(found("suffix_decoding", "{least: 0.6}", ends).empty());
  CHECK(found("suffix_decoding", "{draft_length: 1}", ends) == std::vector<Token>{1});
  CHECK(found("suffix_decoding", "{max_tree_depth: 3}", ends) == std::vector<Token>{1});  // the end and the draft within 3 tokens
  // Past responses win if they promise more: with them, 9 comes twice after 3 of 5 places of [5, 7].
  CHECK(found("suffix_decoding", "{past: [[5, 7, 9, 9], [5, 7, 9, 9], [5, 7, 9, 9]]}", ends) == std::vector<Token>{9, 9});
}

// Lookahead as in its paper's figure: every token of the window has seen the text, level 0 up to its column, and the lower levels
// of its column. The window is a map from (level, place after the text's end); shifting only renames.
class LookaheadByPlaces {
 public:
  LookaheadByPlaces(int window, int ngram, int guesses, Text& text) : window_(window), ngram_(ngram), guesses_(guesses) {
    for (int place = 1; place <= window + ngram - 3; ++place)
      at_[{0, place}] = text.random_token(static_cast<std::uint32_t>(place - 1));
  }
  [[nodiscard]] bool full() const { return top_ == ngram_ - 2; }

  // Tails of the newest n-grams that begin with `last`.
  [[nodiscard]] std::set<std::vector<Token>> guesses(Token last) const {
    std::set<std::vector<Token>> tails;
    for (auto ngram = seen_.rbegin(); ngram != seen_.rend() && static_cast<int>(tails.size()) < guesses_; ++ngram)
      if (ngram->front() == last) tails.insert({ngram->begin() + 1, ngram->end()});
    return tails;
  }
  void saw(std::vector<Token> ngram) { seen_.push_back(std::move(ngram)); }

  void pass(Text& text) {
    if (!text.text().empty()) at_[{0, 0}] = text.text().back();
    const int columns = full() ? window_ : window_ + ngram_ - 2 - top_;
    std::map<std::pair<int, int>, Token> next;
    for (int column = 0; column < columns; ++column) {
      draft::DrafterInput::Prefix prefix = text.end_of_text();
      for (int place = 1; place <= column; ++place) prefix = text.after(prefix, at_.at({0, place}));
      for (int level = 1; level <= top_; ++level) prefix = text.after(prefix, at_.at({level, level + column}));
      const Token token = text.argmax(prefix);
      next[{top_ + 1, top_ + 1 + column}] = token;
      if (!full() || at_.count({0, column}) == 0) continue;
      std::vector<Token> ngram;
      for (int level = 0; level <= top_; ++level) ngram.push_back(at_.at({level, level + column}));
      ngram.push_back(token);
      saw(std::move(ngram));
    }
    at_.merge(next);
    // If the window is full, the lowest level is dropped and the next one takes its name; otherwise every level loses its column
    // 0.
    const int drop = full() ? 1 : 0;
    std::map<std::pair<int, int>, Token> renamed;
    for (const auto& [where, token] : at_)
      if (full() ? where.first > 0 : where.second > where.first) renamed[{where.first - drop, where.second - 1}] = token;
    at_ = std::move(renamed);
    top_ += 1 - drop;
  }

 private:
  int window_;
  int ngram_;
  int guesses_;
  int top_ = 0;                              // highest level
  std::map<std::pair<int, int>, Token> at_;  // by level and place
  std::vector<std::vector<Token>> seen_;
};

TEST_CASE("Lookahead's window and pool, round by round") {
  std::mt19937 random(5);
  int with_guesses = 0;
  for (const auto& [window, ngram, guesses] : {std::array{3, 3, 2}, {2, 4, 1}, {4, 5, 3}, {2, 2, 4}, {7, 4, 7}, {15, 5, 15}}) {
    for (const bool from_text : {false, true}) {
      const draft::Blocks made = make_blocks(
          "lookahead",
          fmt::format("{{window: {}, ngram: {}, guesses: {}, pool_from_text: {}}}", window, ngram, guesses, from_text));
      for (const bool prompt : {false, true}) {
        Text text(prompt ? std::vector<Token>{1, 2, 3, 4, 0, 1, 2} : std::vector<Token>());
        LookaheadByPlaces own(window, ngram, guesses, text);
        const auto memory = made->start();
        std::size_t read = 0;
        for (int round = 0; round < 40; ++round) {
          const std::span<const Token> so_far = text.text();
          for (; from_text && read < so_far.size(); ++read)
            if (read + 1 >= static_cast<std::size_t>(ngram))
              own.saw({so_far.begin() + static_cast<std::ptrdiff_t>(read) + 1 - ngram,
                       so_far.begin() + static_cast<std::ptrdiff_t>(read) + 1});
          draft::ChosenBlock block;
          made->choose(text, memory.get(), block);
          std::set<std::vector<Token>> paths;
          for (std::size_t node = 1; node < block.tree.nodes.size(); ++node) {
            if (block.tree.nodes[node].children > 0) continue;
            std::vector<Token> path;
            for (auto at = static_cast<int>(node); at > 0; at = block.tree.nodes[static_cast<std::size_t>(at)].parent)
              path.insert(path.begin(), block.tokens[static_cast<std::size_t>(at)]);
            paths.insert(std::move(path));
          }
          INFO("window " << window << ", n-grams of " << ngram << ", round " << round);
          const bool may = own.full() && !so_far.empty();
          REQUIRE(paths == (may ? own.guesses(so_far.back()) : std::set<std::vector<Token>>()));
          with_guesses += paths.empty() ? 0 : 1;
          own.pass(text);
          // The target's next tokens: its argmaxes for a while, then other tokens.
          for (std::uint32_t tokens = random() % 4 + 1; tokens > 0; --tokens)
            text.write(random() % 3 == 0 ? static_cast<Token>(random() % text.size) : text.argmax(text.end_of_text()));
        }
      }
    }
  }
  CHECK(with_guesses > 500);
}

TEST_CASE("policies: lengths after given rounds") {
  const auto policy = [](const std::string& kind, const std::string& parameters,
                         std::vector<double> times = std::vector<double>(11, 1.0), int batch = 1) {
    Diagnostics diagnostics;
    const draft::PolicyEntry* entry = draft::policies().find(kind);
    REQUIRE(entry != nullptr);
    const config::Value section = config::parse_text(parameters, "t", diagnostics);
    const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, kind, diagnostics);
    auto made = entry->make(arguments, {10, std::move(times), batch}, diagnostics);
    diagnostics.throw_if_any();
    return made;
  };
  const auto additive = policy("additive", "{}");
  draft::LengthPolicy::Memory memory = additive->start();
  CHECK(memory.length == 5);
  for (const int wanted : {7, 9, 10, 10}) {
    additive->observe(memory, memory.length, memory.length);
    CHECK(memory.length == wanted);
  }
  for (int i = 0; i < 20; ++i) additive->observe(memory, memory.length, 0);
  CHECK(memory.length == 1);

  const auto tiers = policy("ratio_tiers", "{tiers: [1, 3, 7], weight: 0.5}");
  memory = tiers->start();
  CHECK(memory.length == 3);
  tiers->observe(memory, 3, 3);  // average .8: not above
  CHECK(memory.length == 3);
  tiers->observe(memory, 3, 3);  // .9
  CHECK(memory.length == 7);
  tiers->observe(memory, 7, 3);  // .6 and .43 average .51: within the band
  CHECK(memory.length == 7);
  tiers->observe(memory, 7, 0);
  CHECK(memory.length == 3);

  std::vector<double> times;
  for (int k = 0; k <= 10; ++k) times.push_back(1.0 + 0.1 * k);
  const auto goodput = policy("goodput", "{first_alpha: 0.7, weight: 1}", times);
  memory = goodput->start();
  CHECK(memory.length == 4);  // the best length at alpha .7, cost ratio .1
  goodput->observe(memory, 4, 0);
  CHECK(memory.length == 0);
  goodput->observe(memory, 0, 0);
  CHECK(memory.length == 0);  // a round without drafts gives no information
  goodput->observe(memory, 1, 1);
  CHECK(memory.length == 10);
  // However low the first estimate is, trial rounds find the gain of drafting. Mutant: without drafts the estimate returns to it.
  const auto doubting = policy("goodput", "{first_alpha: 0.01, weight: 0.02}", times);
  memory = doubting->start();
  for (int round = 0; round < 4000; ++round) doubting->observe(memory, memory.length, memory.length);
  CHECK(memory.value > 0.95);
  CHECK(memory.length == 10);

  CHECK_FALSE(policy("confidence", "{least: 0.4}")->goes_on(memory, 0.39, 0.0));
  CHECK(policy("confidence", "{least: 0.4}")->goes_on(memory, 0.4, 9.0));
  CHECK_FALSE(policy("entropy", "{most: 2}")->goes_on(memory, 1.0, 2.1));
  CHECK(policy("oracle", "{}")->uses_forecasts());

  // If the first estimate is too low for any draft, only a trial can find out that drafting now pays.
  const auto probing = policy("goodput", "{first_alpha: 0, weight: 1, probe: 3}", times);
  memory = probing->start();
  for (const int wanted : {0, 0, 1}) {
    CHECK(memory.length == 0);
    probing->observe(memory, 0, 0);
    CHECK(memory.length == wanted);
  }
  probing->observe(memory, 1, 1);
  CHECK(memory.length == 10);

  // One length for the batch: 3 of 4 drafts accepted at two sequences, and the lengths that each would have chosen alone.
  const auto together = policy("goodput", "{weight: 1}", times, 2);
  CHECK(together->sequences() == 2);
  memory = together->start();
  together->observe_batch(memory, 2, std::array{2, 1});
  CHECK(memory.value == 0.75);
  CHECK(policy("goodput_per_sequence", "{}", times, 2)->sequences() == 1);

  for (const auto& [batch, wanted] : {std::pair{1, 5}, {4, 5}, {5, 3}, {64, 3}, {1000, 3}}) {
    INFO("batch " << batch);
    CHECK(policy("table", "{table: [[1, 4, 5], [5, 64, 3]]}", times, batch)->start().length == wanted);
  }
}

TEST_CASE("ema_tiers: the lengths that SGLang's rule gives, batch by batch") {
  const auto made = [](const std::string& parameters, int batch) {
    Diagnostics diagnostics;
    const draft::PolicyEntry* entry = draft::policies().find("ema_tiers");
    const config::Value section = config::parse_text(parameters, "t", diagnostics);
    const config::Arguments arguments = config::read_arguments(section, entry->info.parameters, {}, "policy", diagnostics);
    auto policy = entry->make(arguments, {7, {}, batch}, diagnostics);
    diagnostics.throw_if_any();
    return policy;
  };
  using Memory = draft::LengthPolicy::Memory;
  const auto rounds = [](const draft::LengthPolicy& policy, Memory& memory, int count, std::span<const int> accepted) {
    std::vector<int> lengths;
    for (int i = 0; i < count; ++i) {
      policy.observe_batch(memory, memory.length, accepted);
      lengths.push_back(memory.length);
    }
    return lengths;
  };
  // Batch 1 starts in the middle of [1, 3, 5, 7], its average one below. No change occurs in the first ten rounds and the four
  // after them.
  const auto one = made("{}", 1);
  Memory memory = one->start();
  CHECK(memory.length == 5);
  CHECK(memory.value == 4.0);
  CHECK(rounds(*one, memory, 14, std::array{0}) == std::vector<int>(14, 5));
  // By then the average is 4 * .8^15 = .14, below 3 - .75 and 1 - .75 as well: two tiers at once, and no further.
  CHECK(rounds(*one, memory, 1, std::array{0}) == std::vector<int>{1});
  CHECK(memory.value == Approx(4.0 * std::pow(0.8, 15)));
  // Up again: 1 - .8^5 (1 - .14) = .72 > .5, but not > 2.5.
  CHECK(rounds(*one, memory, 5, std::array{1}) == std::vector<int>{1, 1, 1, 1, 3});
  // A batch of 8 uses the mean over its sequences and may draft nothing; it leaves that state with the next change.
  const auto eight = made("{warm_up: 0, every: 1, weight: 1}", 8);
  CHECK(eight->sequences() == 8);
  memory = eight->start();
  CHECK(memory.length == 1);
  CHECK(rounds(*eight, memory, 1, std::array{1, 1, 1, 1, 1, 0, 0, 0}) == std::vector<int>{3});  // .625 > .5
  CHECK(rounds(*eight, memory, 1, std::array{2, 0, 0, 0, 0, 0, 0, 1}) == std::vector<int>{0});  // .375 <= .5, two tiers
  CHECK(rounds(*eight, memory, 1, std::array{0, 0, 0, 0, 0, 0, 0, 0}) == std::vector<int>{1});
  CHECK(memory.value == 0.375);  // no drafts tell nothing
  // Custom tiers inherit SGLang's -.25 at every batch, which its table replaces by 0 from batch 8 on: .375 is then no step down.
  const auto given = made("{tiers: [0, 1, 3], warm_up: 0, every: 1, weight: 1}", 8);
  memory = given->start();
  CHECK(rounds(*given, memory, 1, std::array{2, 0, 0, 0, 0, 0, 0, 1}) == std::vector<int>{1});
  CHECK(made("{}", 32)->start().length == 1);
  CHECK(made("{}", 64)->start().length == 0);
  CHECK(made("{first: 7}", 7)->start().length == 7);
}

TEST_CASE("confidence_roc: the threshold of the least waste, by hand") {
  Diagnostics diagnostics;
  const draft::PolicyEntry* entry = draft::policies().find("confidence_roc");
  const config::Arguments arguments = config::read_arguments(config::parse_text("{takes_hold: next_round}", "t", diagnostics),
                                                             entry->info.parameters, {}, "policy", diagnostics);
  const auto policy = entry->make(arguments, {10, {}, 1}, diagnostics);
  draft::LengthPolicy::Memory memory = policy->start();
  CHECK(policy->goes_on(memory, 0.4, 0.0));
  CHECK_FALSE(policy->goes_on(memory, 0.39, 0.0));
  // Five judged: no move yet. The positions after the first rejected one were not judged.
  policy->observe_tokens(memory, std::array{0.9, 0.8, 0.5, 0.7}, 2);
  policy->observe_tokens(memory, std::array{0.6, 0.55}, 2);
  CHECK(memory.judged.size() == 5);
  CHECK(memory.threshold == 0.4);
  // Accepted .9 .8 .6 .55, rejected .5 .3: at .55 no accepted token is lost and no rejected one passes.
  policy->observe_tokens(memory, std::array{0.3}, 0);
  CHECK(memory.threshold == 0.55);
  // More accepted ones of .2: losing 1 of 5 costs 3/5, 3 of 7 costs 9/7, letting both rejected ones pass costs 1.
  policy->observe_tokens(memory, std::array{0.2}, 1);
  CHECK(memory.threshold == 0.55);
  policy->observe_tokens(memory, std::array{0.2, 0.2}, 2);
  CHECK(memory.threshold == 0.2);
  // By default a request keeps its first threshold. Mutant: the rule of each round is the default.
  const config::Arguments none =
      config::read_arguments(config::parse_text("{}", "t", diagnostics), entry->info.parameters, {}, "policy", diagnostics);
  const auto shipped = entry->make(none, {10, {}, 1}, diagnostics);
  memory = shipped->start();
  for (int round = 0; round < 4; ++round) shipped->observe_tokens(memory, std::array{0.9, 0.8, 0.3}, 2);
  CHECK(memory.threshold == 0.4);
  CHECK_FALSE(shipped->remembers_tokens());
}

TEST_CASE("adaedl: the threshold follows the rate of acceptance") {
  Diagnostics diagnostics;
  const draft::PolicyEntry* entry = draft::policies().find("adaedl");
  const config::Arguments arguments =
      config::read_arguments(config::parse_text("{gamma: 0.25, first: 0.5, step: 0.2, keep: 0.5}", "t", diagnostics),
                             entry->info.parameters, {}, "policy", diagnostics);
  const auto policy = entry->make(arguments, {4, {}, 1}, diagnostics);
  draft::LengthPolicy::Memory memory = policy->start();
  CHECK(policy->goes_on(memory, 0.0, 1.0));  // 1 - sqrt(.25)
  CHECK_FALSE(policy->goes_on(memory, 1.0, 1.01));
  policy->observe(memory, 4, 4);  // average .5, below .9: half a step up
  CHECK(memory.threshold == Approx(0.6));
  for (int i = 0; i < 4; ++i)
    policy->observe(memory, 4, 4);  // averages .75 .875 .9375 ...: two more; after that complete drafts change nothing
  CHECK(memory.threshold == Approx(0.8));
  policy->observe(memory, 3, 3);
  CHECK(memory.threshold == Approx(0.7));
}

TEST_CASE("a batch with one draft length pays for the lengths it drafts, not for the longest of independent ones") {
  const auto cell_of = [](const std::string& policy) {
    return tests::experiment_of(
        fmt::format("{{experiment: lockstep, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: "
                    "uniform}}}}, decode: {{drafter: {{kind: chain, draft_length: 3}}, policy: {{kind: {}}}, verifier: token}}, "
                    "cost: {{model: ratio, cost_ratio: 0.25}}, workload: {{batch: 2}}}}",
                    policy));
  };
  const std::vector<std::uint64_t> drafted = {0, 500, 0, 500};
  CHECK(cell_of("goodput").cells[0].round_time(0.0, drafted).draft.total() == Approx(0.25 * 2.0));
  CHECK(cell_of("goodput_per_sequence").cells[0].round_time(0.0, drafted).draft.total() ==
        Approx(0.25 * (0.25 * 1.0 + 0.75 * 3.0)));
}

TEST_CASE("a batch under a length policy drafts until its longest chain ends") {
  const auto cell_of = [](double batch) {
    return tests::experiment_of(
        fmt::format("{{experiment: lockstep, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: "
                    "uniform}}}}, decode: {{drafter: {{kind: chain, draft_length: 3}}, policy: {{kind: "
                    "additive}}, verifier: token}}, cost: {{model: ratio, cost_ratio: 0.25}}, workload: "
                    "{{batch: {}}}}}",
                    batch));
  };
  // Half of the rounds draft 1, half 3. One sequence takes 2 passes in the mean; with two sequences the longest drafts 3 in three
  // quarters of the rounds.
  const std::vector<std::uint64_t> drafted = {0, 500, 0, 500};
  const spec::Experiment one = cell_of(1);
  const spec::Experiment two = cell_of(2);
  CHECK(one.cells[0].round_time(0.0, drafted).draft.total() == Approx(0.25 * 2.0));
  CHECK(two.cells[0].round_time(0.0, drafted).draft.total() == Approx(0.25 * (0.25 * 1.0 + 0.75 * 3.0)));
}

TEST_CASE("mtp: the stated acceptance is the overlap, and one that no draft has is refused") {
  const auto overlaps = [](double acceptance) {
    return tests::overlaps_of(
        tests::ReadyCell(
            fmt::format("{{experiment: mtp, pair: {{vocab: 50, target: {{family: normal_logits, sigma: 3}}, draft: {{from: "
                        "target, transform: logit_noise, value: 1}}}}, context: {{process: iid, pool: 40}}, decode: "
                        "{{drafter: {{kind: mtp, draft_length: 1, selection: sampled, acceptance: [{}]}}, verifier: token}}}}",
                        acceptance))
            .cell());
  };
  for (const double wanted : {0.05, 0.3, 0.7, 0.905, 0.99, 1.0})
    for (const double own : overlaps(wanted)) CHECK(own == Approx(wanted).margin(1e-12));
  // Every draft overlaps by at least the probability of the target's least likely token.
  CHECK_THROWS_WITH(overlaps(0.0), Catch::Contains("acceptance is 0, allowed: in [") && Catch::Contains("least likely token"));
}

}  // namespace specsim::drafters_test
