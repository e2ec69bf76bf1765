// Drafters that are asked in turn: which draft is used, what each learns from rounds that were not its own, and how passes count.
#include "sim/rounds/draft/drafter.h"
#include "tests/support/drafters.h"

#include <catch2/catch.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace specsim::in_turn_test {

namespace {

using Path = std::vector<int>;

// A text, and a draft model that predicts 70 for the next token, then 71, and so on.
class TextAndModel final : public draft::DrafterInput {
 public:
  explicit TextAndModel(const Path& text) : text_(text.begin(), text.end()) {}
  void prepare(const draft::ChosenBlock&, std::span<const int> nodes) override {
    passes.push_back(static_cast<int>(nodes.size()));
  }
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override {
    ranked_ = {static_cast<Token>(70 + block.tree.nodes[static_cast<std::size_t>(node)].depth), 0.5};
    return {&ranked_, 1};
  }
  [[nodiscard]] std::size_t vocab() const override { return 1000; }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t) override { return 0; }
  Prefix end_of_text() override { return {}; }
  Prefix after(Prefix prefix, Token) override { return prefix; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override { return std::vector<Token>(prefixes.size(), 0); }

  Path passes;  // rows of each

 private:
  std::vector<Token> text_;
  draft::Ranked ranked_;
};

struct Drafted {
  Path path;
  Path passes;
  bool operator==(const Drafted&) const = default;
};

class Rounds {
 public:
  explicit Rounds(const std::string& drafters)
      : drafter_(tests::make_blocks("in_turn", "{drafters: [" + drafters + "]}")), memory_(drafter_->start()) {}
  Drafted behind(const Path& text) {
    TextAndModel input(text);
    draft::ChosenBlock block;
    drafter_->choose(input, memory_.get(), block);
    REQUIRE(block.tree.is_chain());
    Path path;
    for (std::size_t node = 1; node < block.tree.nodes.size(); ++node) path.push_back(static_cast<int>(block.tokens[node]));
    return {path, input.passes};
  }
  [[nodiscard]] const draft::BlockDrafter& drafter() const { return *drafter_; }
  // A copy of the sequence, continued separately.
  void part(const std::unique_ptr<draft::BlockDrafter::Memory>& copy) { memory_ = copy->copy(); }
  [[nodiscard]] std::unique_ptr<draft::BlockDrafter::Memory> memory() const { return memory_->copy(); }

 private:
  draft::Blocks drafter_;
  std::unique_ptr<draft::BlockDrafter::Memory> memory_;
};

const std::string kSimple = "{kind: ngram_simple, draft_length: 2, size_n: 2}";
const std::string kMap = "{kind: ngram_map_k, draft_length: 2, size_n: 1}";
const std::string kMod = "{kind: ngram_mod, draft_length: 1, n_match: 1, n_min: 1}";

}  // namespace

TEST_CASE("in_turn: the first draft is used, and the model is asked if the text has none", "[in_turn]") {
  const Path repeating = {9, 5, 1, 2, 3, 4, 5, 1};
  const Path once = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  const std::string model = "{kind: chain, draft_length: 3, selection: argmax}";
  Rounds chain(kSimple + ", " + model);
  CHECK(chain.behind(repeating) == Drafted{{2, 3}, {}});
  CHECK(chain.behind(once) == Drafted{{70, 71, 72}, {1, 1, 1}});
  // Mutant: the longest draft.
  CHECK(Rounds(kMod + ", " + kSimple).behind(repeating) == Drafted{{2}, {}});
  CHECK(Rounds(kSimple + ", " + kMod).behind(repeating) == Drafted{{2, 3}, {}});
  CHECK(Rounds(kSimple + ", " + kMap + ", " + kMod).behind(once) == Drafted{{}, {}});
  // Modules and heads draft chains; a block's tokens come from one pass over it and the text's last token.
  CHECK(Rounds(kSimple + ", {kind: mtp, draft_length: 2}").behind(once) == Drafted{{70, 71}, {1, 1}});
  CHECK(Rounds(kSimple + ", {kind: eagle3, depth: 2, width: 1}").behind(once) == Drafted{{70, 71}, {1, 1}});
  Rounds block(kSimple + ", {kind: dflash, block_size: 4}");
  CHECK(block.behind(once) == Drafted{{70, 71, 72}, {4}});
  CHECK(block.behind(repeating) == Drafted{{2, 3}, {}});
  CHECK(block.drafter().shape().on_target_state);
  CHECK(block.drafter().shape().counts_passes);
  CHECK_FALSE(Rounds(kSimple + ", " + kMod).drafter().shape().counts_passes);
}

TEST_CASE("in_turn: a drafter learns only how many of its own drafts were accepted", "[in_turn]") {
  // The map's draft has one token accepted; then ngram_simple drafts; then the map again, one token. Mutant: the map receives all
  // tokens emitted since it drafted, three tokens.
  Rounds rounds(kSimple + ", " + kMap);
  Path text = {9, 2, 8, 6, 6, 7, 1, 2, 3, 4, 5, 1};
  CHECK(rounds.behind(text) == Drafted{{2, 3}, {}});
  text.insert(text.end(), {2, 8});
  CHECK(rounds.behind(text) == Drafted{{6, 6}, {}});
  const auto then = rounds.memory();
  text.insert(text.end(), {6, 1});
  CHECK(rounds.behind(text) == Drafted{{2}, {}});
  // A copy remembers the same.
  Rounds copy(kSimple + ", " + kMap);
  copy.part(then);
  CHECK(copy.behind(text) == Drafted{{2}, {}});
  // Nested in another one it behaves as it does alone.
  Rounds inside("{kind: in_turn, drafters: [" + kMap + "]}, " + kMod);
  Rounds plain(kMap + ", " + kMod);
  for (const Path& one : std::vector<Path>{{9, 1, 2, 3, 4, 5, 1}, {9, 1, 2, 3, 4, 5, 1, 2, 4}, {9, 1, 2, 3, 4, 5, 1, 2, 4, 6, 1}})
    CHECK(inside.behind(one) == plain.behind(one));
}

TEST_CASE("in_turn: a drafter that was not asked began with the prompt all the same", "[in_turn]") {
  // ngram_mod has read the prompt in the first round, in which the map drafted, and 20 21 is too new for it. Mutant: it reads the
  // whole text when it is asked.
  Rounds rounds(kMap + ", " + kMod);
  CHECK(rounds.behind({9, 1, 2, 3, 4, 5, 1}) == Drafted{{2, 3}, {}});
  CHECK(rounds.behind({9, 1, 2, 3, 4, 5, 1, 2, 20, 21, 20}) == Drafted{{}, {}});
  CHECK(rounds.behind({9, 1, 2, 3, 4, 5, 1, 2, 20, 21, 20, 4}) == Drafted{{5}, {}});
}

}  // namespace specsim::in_turn_test
