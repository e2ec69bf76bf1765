// Drafts that inference engines copy from the text: ngram_map_k.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry ngram_map_k_theory() {
  return {{"ngram_map_k",
           "the tokens after an earlier occurrence of the text's last tokens in a map, as many as were accepted before, over "
           "every text",
           "llama.cpp, common/ngram-map.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ngram_map_k"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_history(
                cell, theory::ngram_map_draft({draft_length(cell), static_cast<int>(own.integer("size_n")), 0, false}));
          }};
}

}  // namespace specsim::judge
