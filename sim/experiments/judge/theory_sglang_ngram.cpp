// Drafts that inference engines copy from the text: sglang_ngram.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry sglang_ngram_theory() {
  return {{"sglang_ngram",
           "a tree of continuations of the text's suffixes, from a trie of its last tokens, over every text",
           "SGLang, kernels/jit/csrc/ngram_corpus/trie.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"sglang_ngram"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_history(
                cell, theory::sglang_ngram_draft(
                          {static_cast<int>(own.integer("nodes")), static_cast<int>(own.integer("max_trie_depth")),
                           static_cast<int>(own.integer("min_bfs_breadth")), static_cast<int>(own.integer("max_bfs_breadth")),
                           own.text("match_type") == "PROB", drafter_texts(cell, "past")}));
          }};
}

}  // namespace specsim::judge
