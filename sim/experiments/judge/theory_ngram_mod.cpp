// Drafts that inference engines copy from the text: ngram_mod.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry ngram_mod_theory() {
  return {{"ngram_mod",
           "the continuation that a hash table stores for the text's last tokens, over every text",
           "llama.cpp, common/ngram-mod.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ngram_mod"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_history(cell,
                                  theory::ngram_mod_draft({draft_length(cell), static_cast<int>(own.integer("n_match")),
                                                           static_cast<int>(own.integer("n_min")), drafter_texts(cell, "past")}));
          }};
}

}  // namespace specsim::judge
