// Recurrent Drafter's beams by hand, Hydra's built-in tree, and the stopping of SpecDec++.
#include "sim/rounds/draft/drafter.h"
#include "sim/rounds/draft/length_policy.h"
#include "tests/support/cells.h"
#include "tests/support/drafters.h"

#include <catch2/catch.hpp>

#include <array>
#include <map>

namespace specsim::beams_test {

namespace {

// A draft model of three tokens, whose distribution depends on the last one.
class ThreeTokens final : public draft::DrafterInput {
 public:
  std::span<const draft::Ranked> likeliest(const draft::ChosenBlock& block, int node) override {
    static const std::array<std::array<draft::Ranked, 2>, 3> after = {
        {{{{0, 0.5}, {1, 0.4}}}, {{{2, 0.9}, {0, 0.1}}}, {{{1, 0.6}, {2, 0.4}}}}};
    return after[node == 0 ? 0 : block.tokens[static_cast<std::size_t>(node)]];
  }
  [[nodiscard]] std::size_t vocab() const override { return 1000; }
  [[nodiscard]] std::span<const Token> text() const override { return {}; }
  Token random_token(std::uint32_t) override { return 0; }
  Prefix end_of_text() override { return {}; }
  Prefix after(Prefix prefix, Token) override { return prefix; }
  std::vector<Token> target_argmax(std::span<const Prefix> prefixes) override { return std::vector<Token>(prefixes.size(), 0); }
};

}  // namespace

TEST_CASE("redrafter: the likeliest continuations of the level before, and their common prefixes") {
  // Level 1: 0 (.5), 1 (.4). Level 2: 1 2 (.36), 0 0 (.25); 0 1 (.2) is out. Level 3: 1 2 1 (.216), 1 2 2 (.144); 0 0 is no
  // longer a beam.
  const draft::Blocks draft = tests::make_blocks("redrafter", "{beams: 2, draft_length: 3}");
  ThreeTokens input;
  draft::ChosenBlock block;
  draft->choose(input, nullptr, block);
  std::vector<std::vector<Token>> paths(block.tree.nodes.size());
  for (std::size_t node = 1; node < paths.size(); ++node) {
    paths[node] = paths[static_cast<std::size_t>(block.tree.nodes[node].parent)];
    paths[node].push_back(block.tokens[node]);
  }
  paths.erase(paths.begin());
  CHECK(paths == std::vector<std::vector<Token>>{{1}, {1, 2}, {1, 2, 1}, {1, 2, 2}});
  CHECK(draft->work(4).pass_rows == std::vector<double>{1.0, 2.0, 2.0});
  CHECK(draft->work(4).verified_rows == 5.0);
}

TEST_CASE("hydra: a pass for each level, while medusa's heads take one; the built-in tree") {
  CHECK(tests::make_blocks("hydra", "{branching: [2, 2, 1]}")->work(10).pass_rows == std::vector<double>{1.0, 2.0, 4.0});
  CHECK(tests::make_blocks("medusa", "{branching: [2, 2, 1]}")->work(10).pass_rows == std::vector<double>{1.0});
  const draft::Blocks shipped = tests::make_blocks("hydra", "{}");
  CHECK(shipped->shape().nodes == 63);
  CHECK(shipped->shape().draft_length == 4);
  CHECK(shipped->shape().ranks == 10);
  CHECK_FALSE(shipped->shape().from_root);
}

TEST_CASE("specdec_pp: stops after the token whose predecessors have made a rejection likely") {
  const auto policy = [](const std::string& parameters) {
    Diagnostics diagnostics;
    const draft::PolicyEntry* entry = draft::policies().find("specdec_pp");
    REQUIRE(entry != nullptr);
    const config::Value section = config::parse_text(parameters, "t", diagnostics);
    auto made = entry->make(config::read_arguments(section, entry->info.parameters, {}, "specdec_pp", diagnostics),
                            {.longest = 8, .round_times = {}, .batch = 1}, diagnostics);
    diagnostics.throw_if_any();
    return made;
  };
  using Drafted = draft::LengthPolicy::Drafted;
  const std::vector<Drafted> path = {{0.9, 0.5}, {0.9, 0.5}, {0.1, 0.0}};
  const std::span<const Drafted> all(path);
  const auto perfect = policy("{threshold: 0.7, shortest: 1}");
  CHECK(perfect->continues_along(all.first(1)));        // nothing before it
  CHECK(perfect->continues_along(all.first(2)));        // rejected with .5
  CHECK_FALSE(perfect->continues_along(all.first(3)));  // with .75; the third token's own probability does not count yet
  CHECK(policy("{threshold: 0.75, shortest: 1}")->continues_along(all.first(3)));
  CHECK(policy("{threshold: 0.7, shortest: 4}")->continues_along(all.first(3)));
  CHECK(policy("{threshold: 0.7, shortest: 1, head: draft}")->continues_along(all.first(3)));  // .19
}

}  // namespace specsim::beams_test
