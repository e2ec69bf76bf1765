// Drafts from the text as in SGLang and llama.cpp: by hand from their sources, and by theory round by round.
#include "sim/rounds/theory/engine_drafts.h"
#include "sim/rounds/draft/drafter.h"
#include "tests/support/drafters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace specsim::engine_drafts_test {

namespace {

using Path = std::vector<int>;
using Paths = std::vector<Path>;

// The rounds of a sequence: each round starts from the whole text.
class Rounds {
 public:
  Rounds(const std::string& name, const std::string& parameters)
      : drafter_(tests::make_blocks(name, parameters)), memory_(drafter_->start()) {}
  // The drafted paths from the root to every node.
  Paths behind(const Path& text) {
    tests::WrittenText input({text.begin(), text.end()});
    draft::ChosenBlock block;
    drafter_->choose(input, memory_.get(), block);
    Paths paths(block.tree.nodes.size());
    for (std::size_t node = 1; node < paths.size(); ++node) {
      paths[node] = paths[static_cast<std::size_t>(block.tree.nodes[node].parent)];
      paths[node].push_back(static_cast<int>(block.tokens[node]));
    }
    paths.erase(paths.begin());
    return paths;
  }

 private:
  draft::Blocks drafter_;
  std::unique_ptr<draft::BlockDrafter::Memory> memory_;
};

std::set<Path> with_beginnings(const Paths& paths) {
  std::set<Path> all;
  for (const Path& path : paths)
    for (std::size_t size = 1; size <= path.size(); ++size)
      all.insert(Path(path.begin(), path.begin() + static_cast<long>(size)));
  return all;
}

struct Compared {
  int drafting = 0;  // rounds that draft
  int by_text = 0;   // rounds whose drafts do not follow from the text alone
};

// Follows sequences of few tokens, which are repetitive.
void compare(Compared& counts, std::mt19937& random, const std::string& name, const std::string& parameters,
             const theory::HistoryDraft& theory, std::size_t most_emitted) {
  for (int sequence = 0; sequence < 4; ++sequence) {
    Rounds rounds(name, parameters);
    const std::size_t vocab = 2 + random() % 3;
    Path text;
    const auto write = [&](std::size_t tokens) {
      const bool again = text.size() > 8 && random() % 2 == 0;
      const std::size_t from = again ? random() % (text.size() - 6) : 0;
      for (std::size_t i = 0; i < tokens; ++i)
        text.push_back(again && from + i < text.size() ? text[from + i] : static_cast<int>(random() % vocab));
    };
    write(random() % 12);
    Path lengths;
    while (text.size() < 48) {
      lengths.push_back(static_cast<int>(text.size()));
      const Paths drafted = rounds.behind(text);
      INFO(fmt::format("{} {} after {} of {}", name, parameters, text, lengths));
      CHECK(std::set<Path>(drafted.begin(), drafted.end()) == with_beginnings(theory(text, lengths)));
      counts.drafting += drafted.empty() ? 0 : 1;
      counts.by_text += theory(text, Path{lengths.back()}) == theory(text, lengths) ? 0 : 1;
      write(1 + random() % most_emitted);
    }
  }
}

Paths random_texts(std::mt19937& random) {
  Paths texts(random() % 3);
  for (Path& text : texts) {
    text.resize(2 + random() % 8);
    for (int& token : text) token = static_cast<int>(random() % 3);
  }
  return texts;
}

}  // namespace

TEST_CASE("sglang_ngram: a round's tokens are found two rounds later, and the last tokens of the prompt", "[engine_drafts]") {
  Rounds rounds("sglang_ngram", "{nodes: 4, max_trie_depth: 4, max_bfs_breadth: 1}");
  CHECK(rounds.behind({8, 9, 8, 1, 2, 3}).empty());  // the trie is empty
  // 8 1 2 3 was inserted: 1 is found there, 3 1 is not, since 3 was not there before. Mutant: the whole prompt, in which 9
  // follows 8.
  CHECK(rounds.behind({8, 9, 8, 1, 2, 3, 1}) == Paths{{2}, {2, 3}});
  // 1 2 3 1 was inserted, the newest 8 was not. Mutant: the last round's text.
  CHECK(rounds.behind({8, 9, 8, 1, 2, 3, 1, 8}) == Paths{{1}, {1, 2}, {1, 2, 3}});
  CHECK(rounds.behind({8, 9, 8, 1, 2, 3, 1, 8, 5}).empty());
  // Now 5 has also followed 8, most recently.
  CHECK(rounds.behind({8, 9, 8, 1, 2, 3, 1, 8, 5, 8}) == Paths{{5}});
}

TEST_CASE("sglang_ngram: a suffix that was not in the trie is not searched until it occurs again", "[engine_drafts]") {
  Rounds rounds("sglang_ngram", "{nodes: 1, max_trie_depth: 6}");
  CHECK(rounds.behind({1, 2, 3, 2, 4, 1}).empty());
  // 1 2 is in the trie, before 3; but 1 was not in the previous round. 2 was last followed by 4. Mutant: 3, by a new match.
  CHECK(rounds.behind({1, 2, 3, 2, 4, 1, 2}) == Paths{{4}});
  Rounds both("sglang_ngram", "{nodes: 1, max_trie_depth: 6}");
  CHECK(both.behind({1, 2, 3, 2, 4}).empty());
  CHECK(both.behind({1, 2, 3, 2, 4, 1}) == Paths{{2}});
  CHECK(both.behind({1, 2, 3, 2, 4, 1, 2}) == Paths{{3}});
}

TEST_CASE("sglang_ngram: breadths, ages and frequencies", "[engine_drafts]") {
  const auto first = [](const std::string& parameters) {
    return Rounds("sglang_ngram", "{max_trie_depth: 3, past: [[1, 2], [1, 2], [1, 3]], " + parameters + "}").behind({1});
  };
  // After an end of 1 token, of 2 at most: 1 + 1/2 (max - 1) children, rounded down, the newest first.
  CHECK(first("max_bfs_breadth: 2") == Paths{{3}});
  CHECK(first("max_bfs_breadth: 3") == Paths{{3}, {2}});
  CHECK(first("max_bfs_breadth: 3, nodes: 1") == Paths{{3}});
  CHECK(first("min_bfs_breadth: 2, max_bfs_breadth: 2") == Paths{{3}, {2}});
  // 2 was inserted twice as often.
  CHECK(first("match_type: PROB") == Paths{{2}, {3}});
  CHECK(first("match_type: PROB, max_bfs_breadth: 1") == Paths{{2}});
  // The product of the shares: 1 2 5 is 3/4, 1 3 is 1/4; the longest end comes first, whatever its probability.
  CHECK(Rounds("sglang_ngram", "{match_type: PROB, max_trie_depth: 3, nodes: 2, past: [[1, 2, 5], [1, 2, 5], [1, 3]]}")
            .behind({1}) == Paths{{2}, {2, 5}});
  CHECK(Rounds("sglang_ngram", "{match_type: PROB, max_trie_depth: 3, nodes: 2, past: [[1, 2], [1, 2], [1, 2], [7, 1, 4]]}")
            .behind({7, 1}) == Paths{{4}, {2}});
}

TEST_CASE("sglang_ngram: every round is paid for whole, and its blocks are trees", "[engine_drafts]") {
  const draft::Blocks drafter = tests::make_blocks("sglang_ngram", "{}");
  CHECK(drafter->work(0).verified_rows == 12.0);  // speculative-num-draft-tokens' default
  CHECK(drafter->shape().nodes == 11);
  CHECK(drafter->shape().draft_length == 11);
  CHECK(tests::make_blocks("sglang_ngram", "{max_trie_depth: 6}")->shape().draft_length == 5);
  CHECK(drafter->shape().branches);
}

TEST_CASE("ngram_simple: the last place, without the newest token, and enough behind it", "[engine_drafts]") {
  const auto behind = [](const Path& text) { return Rounds("ngram_simple", "{draft_length: 2, size_n: 2}").behind(text); };
  CHECK(behind({9, 1, 2, 3, 4, 1, 2}) == Paths{{3}, {3, 4}});
  CHECK(behind({1, 2, 3, 4, 1, 2}).empty());     // size_n + draft_length + 2 tokens
  CHECK(behind({1, 2, 3, 4, 9, 1, 2}).empty());  // at the very beginning
  CHECK(behind({9, 9, 9, 1, 2, 3, 1, 2}) == Paths{{3}, {3, 1}});
  CHECK(behind({9, 9, 9, 9, 1, 2, 1, 2}).empty());                         // a single token comes after it, apart from the newest
  CHECK(behind({9, 1, 2, 5, 5, 1, 2, 6, 7, 1, 2}) == Paths{{6}, {6, 7}});  // Mutant: the first place, as prompt_lookup
}

TEST_CASE("ngram_mod: the table's last token, drafts that are long enough, and a table that is emptied", "[engine_drafts]") {
  CHECK(Rounds("ngram_mod", "{draft_length: 3, n_match: 2, n_min: 1}").behind({1, 2, 3, 4, 1, 2}) ==
        Paths{{3}, {3, 4}, {3, 4, 1}});
  // 1 2 was followed by 3, then by 4. Mutant: the first.
  CHECK(Rounds("ngram_mod", "{draft_length: 1, n_match: 2, n_min: 1}").behind({1, 2, 3, 1, 2, 4, 1, 2}) == Paths{{4}});
  Rounds one("ngram_mod", "{draft_length: 4, n_match: 2, n_min: 1}");
  Rounds two("ngram_mod", "{draft_length: 4, n_match: 2, n_min: 2}");
  for (Rounds* const rounds : {&one, &two}) CHECK(rounds->behind({1, 2, 3}).empty());
  CHECK(one.behind({1, 2, 3, 1, 2}) == Paths{{3}});  // 2 3 is followed by nothing that has been read
  CHECK(two.behind({1, 2, 3, 1, 2}).empty());
  // Emitted tokens are read once more than 32 are new.
  Path text = {1, 2, 3};
  for (int i = 0; i < 30; ++i) text.push_back(10 + i);
  text.push_back(10);
  text.push_back(11);
  Rounds late("ngram_mod", "{draft_length: 1, n_match: 2, n_min: 1}");
  late.behind({1, 2, 3});
  CHECK(late.behind(Path(text.begin() + 1, text.end())).empty());
  Rounds in_time("ngram_mod", "{draft_length: 1, n_match: 2, n_min: 1}");
  in_time.behind({1, 2, 3});
  CHECK(in_time.behind(text) == Paths{{12}});
  // After five drafts of which nothing is accepted, n-grams that are not in the text are forgotten.
  Rounds poor("ngram_mod", "{draft_length: 1, n_match: 1, n_min: 1, past: [[1, 2]]}");
  CHECK(poor.behind({1}).empty());
  for (std::size_t size = 2; size <= 6; ++size) CHECK(poor.behind(Path(size, 1)) == Paths{{2}});
  CHECK(poor.behind(Path(7, 1)).empty());
  // Two n-grams of one hash: 3 6364136223846793005 + 0 and 0 + 32135 are equal modulo 2^22.
  CHECK(Rounds("ngram_mod", "{draft_length: 1, n_match: 2, n_min: 1, past: [[3, 0, 9]]}").behind({5, 0, 32135}) == Paths{{9}});
}

TEST_CASE("ngram_cache: counts, shares, statistics, and separate counts", "[engine_drafts]") {
  CHECK(Rounds("ngram_cache", "{draft_length: 3}").behind({1, 2, 3, 1, 2, 3, 1}) == Paths{{2}, {2, 3}, {2, 3, 1}});
  // Three tokens were seen once, and that is enough; two tokens and one must be seen twice.
  CHECK(Rounds("ngram_cache", "{draft_length: 1}").behind({5, 6, 7, 5, 6, 7}) == Paths{{5}});
  CHECK(Rounds("ngram_cache", "{draft_length: 1}").behind({5, 6, 5, 6}).empty());
  CHECK(Rounds("ngram_cache", "{draft_length: 1}").behind({5, 6, 7, 5}).empty());
  CHECK(Rounds("ngram_cache", "{draft_length: 1}").behind({5, 6, 7, 5, 6, 8, 5})[0] == Path{6});
  // 5 6 5 6 in two rounds has no 6 5. Mutant: counting continues across rounds.
  Rounds apart("ngram_cache", "{draft_length: 1}");
  CHECK(apart.behind({5, 6}).empty());
  CHECK(apart.behind({5, 6, 5, 6}).empty());
  // Of the two tokens after 0 1 the one that follows it usually.
  for (const int usual : {7, 8})
    CHECK(Rounds("ngram_cache", fmt::format("{{draft_length: 1, statistics: [[0, 1, {0}, 0, 1, {0}]]}}", usual))
              .behind({0, 1, 7, 2, 0, 1, 8, 0, 1}) == Paths{{usual}});
  // One usual continuation weighs a hundred times: 7 is taken for the token after 0 1, and is not sure. Mutant: ten times.
  Path often = {0, 1, 7};
  for (int i = 0; i < 12; ++i) often.insert(often.end(), {20 + 2 * i, 21 + 2 * i, 0, 1, 8});
  often.insert(often.end(), {60, 61, 0, 1});
  CHECK(Rounds("ngram_cache", "{draft_length: 1}").behind(often) == Paths{{8}});
  CHECK(Rounds("ngram_cache", "{draft_length: 1, statistics: [[0, 1, 7]]}").behind(often).empty());
  // It must occur twice in past, and two times in statistics as well.
  CHECK(Rounds("ngram_cache", "{draft_length: 1, past: [[0, 1, 7]]}").behind({0, 1}).empty());
  CHECK(Rounds("ngram_cache", "{draft_length: 1, past: [[9, 0, 1, 7], [9, 0, 1, 7]]}").behind({9, 0, 1}) == Paths{{7}});
  CHECK(Rounds("ngram_cache", "{draft_length: 1, statistics: [[0, 1, 7]]}").behind({0, 1}).empty());
  CHECK(Rounds("ngram_cache", "{draft_length: 1, statistics: [[0, 1, 7], [0, 1, 7]]}").behind({0, 1}) == Paths{{7}});
}

TEST_CASE("ngram_map_k: the prompt's last place is kept, with no more drafts than were accepted before", "[engine_drafts]") {
  const auto behind = [](const Path& text) { return Rounds("ngram_map_k", "{draft_length: 2, size_n: 1}").behind(text); };
  CHECK(behind({9, 1, 2, 3, 4, 5, 1}) == Paths{{2}, {2, 3}});
  CHECK(behind({1, 2, 3, 4, 5, 6, 1}).empty());  // at the very beginning
  CHECK(behind({9, 1, 2, 3, 1}).empty());        // one token more than a key and a value comes after the place
  CHECK(behind({9, 1, 2, 3, 4, 1}) == Paths{{2}, {2, 3}});
  CHECK(behind({9, 1, 2, 3, 1, 4, 5, 6, 7, 1}) == Paths{{4}, {4, 5}});  // Mutant: the first place
  // Of two tokens one is accepted, and one is drafted the next time; of that none, and nothing more. Mutant: two each time.
  Rounds shrinking("ngram_map_k", "{draft_length: 2, size_n: 1}");
  Path text = {9, 1, 2, 3, 4, 5, 1};
  const auto emit = [&](Rounds& rounds, const Path& tokens) {
    text.insert(text.end(), tokens.begin(), tokens.end());
    return rounds.behind(text);
  };
  CHECK(shrinking.behind(text) == Paths{{2}, {2, 3}});
  CHECK(emit(shrinking, {2, 8}).empty());
  CHECK(emit(shrinking, {1}) == Paths{{2}});
  CHECK(emit(shrinking, {6}).empty());
  CHECK(emit(shrinking, {1}).empty());
  // Mutants: the last place, which 7 8 follow; the last place that was emitted, which 5 5 follow.
  Rounds prompt("ngram_map_k", "{draft_length: 2, size_n: 1}");
  text = {9, 1, 2, 3, 4, 5, 6, 1};
  CHECK(prompt.behind(text) == Paths{{2}, {2, 3}});
  CHECK(emit(prompt, {2, 3, 7}).empty());
  CHECK(emit(prompt, {1, 7, 8, 7, 8, 6, 6, 6, 1}) == Paths{{2}, {2, 3}});
  Rounds emitted("ngram_map_k", "{draft_length: 2, size_n: 1}");
  text = {9, 9, 9, 9, 9};
  CHECK(emitted.behind(text).empty());
  CHECK(emit(emitted, {8, 8}).empty());
  CHECK(emit(emitted, {1, 2, 3, 4, 5, 6}).empty());
  CHECK(emit(emitted, {7, 1}) == Paths{{2}, {2, 3}});
  CHECK(emit(emitted, {5, 5, 5, 5, 5, 1}) == Paths{{2}, {2, 3}});
}

TEST_CASE("ngram_map_k: n-grams that it does not find", "[engine_drafts]") {
  // The place where the prompt ends is not searched, however long the text becomes. Mutant: all of the text.
  Rounds gap("ngram_map_k", "{draft_length: 2, size_n: 1}");
  CHECK(gap.behind({9, 9, 9, 9, 1, 2, 3, 4}).empty());
  CHECK(gap.behind({9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1}).empty());
  CHECK(Rounds("ngram_map_k", "{draft_length: 2, size_n: 1}").behind({9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1}) ==
        Paths{{2}, {2, 3}});
  // 3 2654435761 + 0 and 0 + 158995 are equal modulo 2^18. The later n-gram of the prompt occupies the place in the table; the
  // earlier one, which the first round would have found, is lost. Mutant: both are found.
  const Path both = {9, 3, 0, 5, 6, 7, 0, 158995, 8, 8, 4, 4, 4, 4};
  const auto and_then = [&](const Path& more) {
    Path text = both;
    text.insert(text.end(), more.begin(), more.end());
    return text;
  };
  CHECK(Rounds("ngram_map_k", "{draft_length: 2, size_n: 2}").behind(and_then({3, 0})) == Paths{{5}, {5, 6}});
  Rounds lost("ngram_map_k", "{draft_length: 2, size_n: 2}");
  CHECK(lost.behind(both).empty());
  CHECK(lost.behind(and_then({4, 3, 0})).empty());
  CHECK(lost.behind(and_then({4, 3, 0, 1, 0, 158995})) == Paths{{8}, {8, 8}});
}

TEST_CASE("ngram_map_k4v: four values, the commonest at least twice as common as the others", "[engine_drafts]") {
  const auto behind = [](const Path& text) { return Rounds("ngram_map_k4v", "{draft_length: 2, size_n: 1}").behind(text); };
  CHECK(behind({9, 1, 4, 5, 1, 2, 3, 1, 2, 3, 6, 6, 1}) == Paths{{2}, {2, 3}});  // Mutant: three times as common
  CHECK(behind({9, 1, 2, 3, 1, 4, 5, 6, 6, 6, 1}).empty());                      // Mutant: ngram_map_k
  // 2 3 is the most common, 4 5 follows the place. Mutant: the commonest.
  CHECK(behind({9, 1, 2, 3, 1, 2, 3, 1, 4, 5, 6, 6, 1}) == Paths{{4}, {4, 5}});
  // Six against three; the fifth value would be the fourth to count. Mutant: it is counted.
  Path text = {9};
  for (const int value : {0, 0, 0, 0, 0, 0, 1, 2, 3, 4})
    for (const int token : {1, 10 + value, 20 + value}) text.push_back(token);
  for (const int token : {6, 6, 6, 1}) text.push_back(token);
  CHECK(behind(text) == Paths{{14}, {14, 24}});
  // One against one; the next round that finds it counts the place's own value once more. Mutant: it does not.
  Rounds again("ngram_map_k4v", "{draft_length: 2, size_n: 1}");
  CHECK(again.behind({9, 1, 2, 3, 1, 4, 5, 6, 6, 6, 1}).empty());
  CHECK(again.behind({9, 1, 2, 3, 1, 4, 5, 6, 6, 6, 1, 7, 1}) == Paths{{4}, {4, 5}});
  Rounds twice("ngram_map_k4v", "{draft_length: 2, size_n: 1, min_hits: 2}");
  CHECK(twice.behind({9, 1, 2, 3, 6, 6, 6, 1}).empty());
  CHECK(twice.behind({9, 1, 2, 3, 6, 6, 6, 1, 7, 1}) == Paths{{2}, {2, 3}});
  // None of its last draft was accepted.
  CHECK(twice.behind({9, 1, 2, 3, 6, 6, 6, 1, 7, 1, 8}).empty());
  CHECK(twice.behind({9, 1, 2, 3, 6, 6, 6, 1, 7, 1, 8, 1}).empty());
}

TEST_CASE("engines' drafts out of the text are theory's, round by round", "[engine_drafts]") {
  std::mt19937 random(31);
  Compared sglang;
  Compared simple;
  Compared mod;
  Compared cache;
  Compared map;
  Compared values;
  for (int i = 0; i < 60; ++i) {
    const Paths past = random_texts(random);
    const int depth = 2 + static_cast<int>(random() % 6);
    const int least = 1 + static_cast<int>(random() % 2);
    const theory::SglangNgram trie = {
        1 + static_cast<int>(random() % 9), depth, least, least + static_cast<int>(random() % 5), random() % 2 == 0, past};
    compare(sglang, random, "sglang_ngram",
            fmt::format("{{nodes: {}, max_trie_depth: {}, min_bfs_breadth: {}, max_bfs_breadth: {}, "
                        "match_type: {}, past: {}}}",
                        trie.nodes, depth, least, trie.most_breadth, trie.by_frequency ? "PROB" : "BFS", past),
            theory::sglang_ngram_draft(trie), static_cast<std::size_t>(std::min(depth, 4)));
    const int length = 1 + static_cast<int>(random() % 5);
    const int size = 1 + static_cast<int>(random() % 3);
    compare(
        simple, random, "ngram_simple", fmt::format("{{draft_length: {}, size_n: {}}}", length, size),
        [&](std::span<const int> text, std::span<const int>) { return Paths{theory::ngram_simple_draft(length, size)(text)}; },
        5);
    const theory::NgramMod hashes = {length, size, static_cast<int>(random() % 3), past};
    compare(mod, random, "ngram_mod",
            fmt::format("{{draft_length: {}, n_match: {}, n_min: {}, past: {}}}", length, size, hashes.least, past),
            theory::ngram_mod_draft(hashes), 3);
    const theory::NgramCache counts = {length, random_texts(random), past};
    compare(cache, random, "ngram_cache",
            fmt::format("{{draft_length: {}, statistics: {}, past: {}}}", length, counts.statistics, past),
            theory::ngram_cache_draft(counts), 5);
    const int hits = 1 + static_cast<int>(random() % 2);
    compare(map, random, "ngram_map_k", fmt::format("{{draft_length: {}, size_n: {}}}", length, size),
            theory::ngram_map_draft({length, size, 0, false}), 5);
    compare(values, random, "ngram_map_k4v", fmt::format("{{draft_length: {}, size_n: {}, min_hits: {}}}", length, size, hits),
            theory::ngram_map_draft({length, size, hits, true}), 5);
  }
  CHECK(sglang.drafting > 1000);
  CHECK(simple.drafting > 500);
  CHECK(mod.drafting > 1000);
  CHECK(cache.drafting > 1000);
  CHECK(map.drafting > 500);
  CHECK(values.drafting > 500);
  // Mutants: a trie, tables and counts that are rebuilt from the text.
  CHECK(sglang.by_text > 1000);
  CHECK(mod.by_text > 100);
  CHECK(cache.by_text > 100);
  CHECK(map.by_text > 100);
  CHECK(values.by_text > 100);
}

}  // namespace specsim::engine_drafts_test
