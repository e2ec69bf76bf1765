// Drafts that inference engines copy from the text: ngram_cache.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/engine_drafts.h"

namespace specsim::judge {

TheoryEntry ngram_cache_theory() {
  return {{"ngram_cache",
           "the continuation that followed the text's last tokens often and consistently enough, over every text",
           "llama.cpp, common/ngram-cache.cpp",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"ngram_cache"},
          [](const spec::Cell& cell) {
            return follow_history(cell, theory::ngram_cache_draft({draft_length(cell), drafter_texts(cell, "statistics"),
                                                                   drafter_texts(cell, "past")}));
          }};
}

}  // namespace specsim::judge
