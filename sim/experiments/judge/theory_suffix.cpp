// Drafts copied from the commonest continuation of the text's longest repeated suffix.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"

namespace specsim::judge {

TheoryEntry suffix_theory() {
  return {{"suffix",
           "the most frequent continuation of the text's longest repeated suffix, over every text",
           "Oliaro et al., arXiv 2411.04975",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"suffix"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            return follow_text(cell, theory::suffix_draft(draft_length(cell), static_cast<int>(own.integer("max_match")),
                                                          own.number("factor"), own.number("least")));
          }};
}

}  // namespace specsim::judge
