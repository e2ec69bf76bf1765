// Drafts copied from the first occurrence of the text's last tokens.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"

namespace specsim::judge {

TheoryEntry prompt_lookup_theory() {
  return {{"prompt_lookup",
           "the tokens after the first occurrence of the text's last tokens, over every text",
           "Saxena, prompt lookup decoding, 2023",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"prompt_lookup"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_text(cell, theory::prompt_lookup_draft(draft_length(cell), static_cast<int>(own.integer("max_ngram")),
                                                                 static_cast<int>(own.integer("min_ngram"))));
          }};
}

}  // namespace specsim::judge
