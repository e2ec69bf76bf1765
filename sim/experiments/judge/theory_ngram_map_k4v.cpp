// Drafts that inference engines copy from the text: ngram_map_k4v.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry ngram_map_k4v_theory() {
  return {{"ngram_map_k4v",
           "the most frequent continuation of the text's last tokens, as many tokens as were accepted before, over every text",
           "llama.cpp, common/ngram-map.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ngram_map_k4v"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_history(cell, theory::ngram_map_draft({draft_length(cell), static_cast<int>(own.integer("size_n")),
                                                                 static_cast<int>(own.integer("min_hits")), true}));
          }};
}

}  // namespace specsim::judge
