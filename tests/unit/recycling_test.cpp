// Drafts without a model: the target's earlier predictions after a token, and copies from the first place of the text's longest
// end.
#include "sim/rounds/draft/drafter.h"
#include "tests/support/cells.h"

#include <catch2/catch.hpp>

#include <map>

namespace specsim::recycling_test {

namespace {

// A target whose likeliest tokens after token t are t + 1, t + 2, ... of ten.
class Counting final : public draft::DrafterInput {
 public:
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock&, int) override { return {}; }
  [[nodiscard]] std::size_t vocab() const override { return 1000; }
  [[nodiscard]] std::span<const Token> text() const override { return now; }
  Token random_token(std::uint32_t) override { return 0; }
  Prefix end_of_text() override { return {now.back(), 0}; }
  Prefix after(Prefix prefix, Token token) override { return {token, prefix.depth + 1}; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override { return std::vector<Token>(prefixes.size(), 0); }
  std::span<const Token> target_likeliest(Prefix prefix) override {
    likeliest_.clear();
    for (Token i = 1; i <= 3; ++i) likeliest_.push_back((prefix.context + i) % 10);
    return likeliest_;
  }
  std::vector<Token> now;

 private:
  std::vector<Token> likeliest_;
};

using Paths = std::vector<std::vector<Token>>;

class Drafting {
 public:
  Drafting(const std::string& name, const std::string& parameters) {
    Diagnostics diagnostics;
    const draft::DrafterEntry* entry = draft::drafters().find(name);
    REQUIRE(entry != nullptr);
    const config::Value section = config::parse_text(parameters, "t", diagnostics);
    drafter_ = std::get<draft::Blocks>(
        entry->make(config::read_arguments(section, entry->info.parameters, {}, name, diagnostics), diagnostics));
    diagnostics.throw_if_any();
    memory_ = drafter_->start();
  }
  // The drafted paths from the root to every node.
  Paths behind(std::vector<Token> text) {
    Counting input;
    input.now = std::move(text);
    draft::ChosenBlock block;
    drafter_->choose(input, memory_.get(), block);
    Paths paths(block.tree.nodes.size());
    for (std::size_t node = 1; node < paths.size(); ++node) {
      paths[node] = paths[static_cast<std::size_t>(block.tree.nodes[node].parent)];
      paths[node].push_back(block.tokens[node]);
    }
    paths.erase(paths.begin());
    return paths;
  }

 private:
  std::shared_ptr<const draft::BlockDrafter> drafter_;
  std::unique_ptr<draft::BlockDrafter::Memory> memory_;
};

}  // namespace

TEST_CASE("token_recycling: a token's followers are the target's predictions after it, accepted or not") {
  Drafting recycling("token_recycling", "{paths: [[0], [1], [0, 0], [1, 2]], kept: 3}");
  CHECK(recycling.behind({5}).empty());  // no prediction is known; the pass gives the tokens after 5
  CHECK(recycling.behind({5}) == Paths{{6}, {7}});
  // The pass verified 6 and 7 as well: their followers are known, those of 8 are not.
  CHECK(recycling.behind({5}) == Paths{{6}, {7}, {6, 7}, {7, 0}});
  CHECK(recycling.behind({1, 0}) == Paths{{1}, {2}});  // 0 was drafted after 7
  CHECK(recycling.behind({1, 8}).empty());
  CHECK(recycling.behind({8}) == Paths{{9}, {0}, {0, 3}});  // 1, 2, 3 follow 0
}

TEST_CASE("token_recycling: the shipped tree has 80 tokens, 6 deep") {
  Diagnostics diagnostics;
  const draft::DrafterEntry* entry = draft::drafters().find("token_recycling");
  REQUIRE(entry != nullptr);
  const draft::Draft made = entry->make(config::read_arguments(config::parse_text("{}", "t", diagnostics), entry->info.parameters,
                                                               {}, "token_recycling", diagnostics),
                                        diagnostics);
  CHECK(std::get<draft::Blocks>(made)->shape().nodes == 80);
  CHECK(std::get<draft::Blocks>(made)->shape().draft_length == 6);
}

TEST_CASE("sam_decoding: the tree that it recycles by is its program's own, of 60 tokens, 5 deep") {
  Drafting recycling("sam_decoding", "{draft_length: 2, threshold: 9}");
  // Mutant: token_recycling's tree of 80, whose first token has 8 followers and which is 6 deep.
  const Paths none = recycling.behind({5});
  CHECK(none.empty());
  Diagnostics diagnostics;
  const draft::DrafterEntry* entry = draft::drafters().find("sam_decoding");
  const draft::Draft made = entry->make(
      config::read_arguments(config::parse_text("{}", "t", diagnostics), entry->info.parameters, {}, "sam_decoding", diagnostics),
      diagnostics);
  CHECK(std::get<draft::Blocks>(made)->shape().nodes == 60);
  CHECK(std::get<draft::Blocks>(made)->shape().draft_length == 39);
  const draft::Draft shallow = entry->make(config::read_arguments(config::parse_text("{draft_length: 1}", "t", diagnostics),
                                                                  entry->info.parameters, {}, "sam_decoding", diagnostics),
                                           diagnostics);
  CHECK(std::get<draft::Blocks>(shallow)->shape().draft_length == 5);
}

TEST_CASE("sam_decoding: the first place of the longest suffix, and a shorter suffix if too little follows") {
  Drafting copies("sam_decoding", "{draft_length: 2, threshold: 1, otherwise: nothing}");
  // 1 2 first occurs before 3 4.
  CHECK(copies.behind({1, 2, 3, 4, 1, 2, 5, 1, 2}) == Paths{{3}, {3, 4}});
  CHECK(copies.behind({7, 8}).empty());
  CHECK(copies.behind({2, 9, 9, 2, 1, 2, 3, 2, 1, 2}) == Paths{{3}, {3, 2}});
  // 2 1 2 occurs before a single token, and so does 1 2; 2 first occurs before 9 9.
  CHECK(copies.behind({2, 9, 9, 2, 1, 2, 1, 2}) == Paths{{9}, {9, 9}});
  Drafting choosy("sam_decoding", "{draft_length: 2, threshold: 3, otherwise: nothing}");
  CHECK(choosy.behind({1, 2, 3, 4, 1, 2}).empty());
  CHECK(choosy.behind({0, 1, 2, 3, 4, 0, 1, 2}) == Paths{{3}, {3, 4}});
}

TEST_CASE("sam_decoding: a corpus wins if its match is longer by more than the bias") {
  const std::string corpus = "corpus: [[5, 1, 2, 8, 8]], draft_length: 3, threshold: 2, otherwise: nothing";
  const std::vector<Token> text = {1, 2, 3, 4, 6, 5, 1, 2};
  CHECK(Drafting("sam_decoding", "{bias: 1, " + corpus + "}").behind(text) == Paths{{3}, {3, 4}, {3, 4, 6}});
  CHECK(Drafting("sam_decoding", "{bias: 0, " + corpus + "}").behind(text) == Paths{{8}, {8, 8}});
}

TEST_CASE("sam_decoding: the target's earlier predictions are recycled if no end is long enough") {
  Drafting both("sam_decoding", "{draft_length: 2, threshold: 2, kept: 3}");
  CHECK(both.behind({5}).empty());
  CHECK(both.behind({4, 5}) == Paths{{6}, {7}, {8}});
  CHECK(both.behind({4, 5, 6, 4, 5}) == Paths{{6}, {6, 4}});
}

}  // namespace specsim::recycling_test
