// Drafts that inference engines copy from the text: ngram_simple.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry ngram_simple_theory() {
  return {{"ngram_simple",
           "the tokens after the last earlier occurrence of the text's last tokens, over every text",
           "llama.cpp, common/ngram-map.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ngram_simple"},
          [](const spec::Cell& cell) {
            return follow_text(cell, theory::ngram_simple_draft(draft_length(cell),
                                                                static_cast<int>(drafter_arguments(cell).integer("size_n"))));
          }};
}

}  // namespace specsim::judge
