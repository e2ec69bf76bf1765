// The choice of suffix decoding among equally common tokens: by hand, by theory and by labels in reverse order.
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/suffix_scores.h"
#include "sim/rounds/theory/chosen_trees.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace specsim::suffix_ties_test {

namespace {

// A drafter of the text sees nothing else.
class Text final : public draft::DrafterInput {
 public:
  explicit Text(std::vector<Token> text) : text_(std::move(text)) {}
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock&, int) override { return {}; }
  [[nodiscard]] std::size_t vocab() const override { return 1000; }
  [[nodiscard]] std::span<const Token> text() const override { return text_; }
  Token random_token(std::uint32_t) override { return 0; }
  Prefix end_of_text() override { return {}; }
  Prefix after(Prefix, Token) override { return {}; }
  std::vector<Token> target_argmax(std::span<const Prefix>) override { return {}; }

 private:
  std::vector<Token> text_;
};

std::vector<Token> drafted_by(const std::string& kind, const std::string& parameters, const std::vector<Token>& text) {
  Diagnostics diagnostics;
  const draft::DrafterEntry* entry = draft::drafters().find(kind);
  const config::Arguments arguments =
      config::read_arguments(config::parse_text(parameters, "t", diagnostics), entry->info.parameters, {}, kind, diagnostics);
  const draft::Draft made = entry->make(arguments, diagnostics);
  diagnostics.throw_if_any();
  Text input(text);
  draft::ChosenBlock block;
  std::get<draft::Blocks>(made)->choose(input, nullptr, block);
  return block.tokens.empty() ? std::vector<Token>() : std::vector<Token>(block.tokens.begin() + 1, block.tokens.end());
}

}  // namespace

TEST_CASE("suffix decoding: of equal counts the head of the program's list of siblings", "[suffix]") {
  const auto head = [](std::vector<Token> nexts) { return draft::commonest_next(nexts)->token; };
  CHECK(!draft::commonest_next({}));
  CHECK(head({2, 1}) == 2);  // once each: the first. Mutant: the lower token.
  // 1 is at the front, so its second occurrence leaves it there; 2 moves up to it, from the front of its own count, and passes
  // it.
  CHECK(head({1, 2, 1, 2}) == 2);  // Mutant: the lower token
  CHECK(head({2, 1, 2, 1}) == 1);
  // 3 moves up from after 1, so that it follows 2. Mutant: the one that reached the count last.
  CHECK(head({1, 2, 3, 2, 3}) == 2);
  CHECK(draft::commonest_next(std::vector<Token>{1, 2, 3, 2, 3})->times == 2);
}

TEST_CASE("suffix decoding drafts as the program's tree does, given by theory token by token", "[suffix]") {
  std::mt19937 random(18);
  int drafts = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<Token> text(4 + random() % 40);
    const std::uint32_t vocab = 2 + random() % 4;
    for (Token& token : text) token = static_cast<Token>(random() % vocab);
    const std::vector<int> as_int(text.begin(), text.end());
    std::vector<Token> reversed = text;
    for (Token& token : reversed) token = static_cast<Token>(vocab - 1) - token;
    theory::SuffixScores rule;
    rule.draft_length = 8;
    rule.depth = 3 + static_cast<int>(random() % 12);
    rule.factor = 2.0;
    rule.least = 0.1;
    const std::string settings = fmt::format("{{draft_length: 8, max_tree_depth: {}, factor: 2, least: 0.1", rule.depth);
    std::vector<Token> drafted = drafted_by("suffix_decoding", settings + "}", text);
    CHECK(std::vector<int>(drafted.begin(), drafted.end()) == theory::suffix_scores_draft(rule)(as_int));
    drafts += drafted.empty() ? 0 : 1;
    // Mutant: ties by the token's number, which labels in reverse order change.
    for (Token& token : drafted) token = static_cast<Token>(vocab - 1) - token;
    CHECK(drafted_by("suffix_decoding", settings + "}", reversed) == drafted);
    rule.past = {{0, 1, 0, 0, 1}, {1, 1, 0, 1}};
    drafted = drafted_by("suffix_decoding", settings + ", past: [[0, 1, 0, 0, 1], [1, 1, 0, 1]]}", text);
    CHECK(std::vector<int>(drafted.begin(), drafted.end()) == theory::suffix_scores_draft(rule)(as_int));
    drafted = drafted_by("suffix", "{draft_length: 8, max_match: 5, factor: 2, least: 0.1}", text);
    CHECK(std::vector<int>(drafted.begin(), drafted.end()) == theory::suffix_draft(8, 5, 2.0, 0.1)(as_int));
  }
  CHECK(drafts > 2000);
}

}  // namespace specsim::suffix_ties_test
