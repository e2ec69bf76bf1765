// Drafts copied from continuations of the text's suffixes, scored by how often they followed.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"

namespace specsim::judge {

TheoryEntry suffix_decoding_theory() {
  return {{"suffix_decoding",
           "the continuation with the most expected tokens over all lengths of the text's suffix, over every text",
           "Oliaro et al., arXiv 2411.04975",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"suffix_decoding"},
          [](const spec::Cell& cell) {
            const config::Arguments& own = drafter_arguments(cell);
            theory::SuffixScores rule;
            rule.draft_length = draft_length(cell);
            rule.depth = static_cast<int>(own.integer("max_tree_depth"));
            rule.factor = own.number("factor");
            rule.offset = own.number("offset");
            rule.least = own.number("least");
            rule.prompt = prompt_of(cell).size();
            if (own.has("past"))
              for (const std::vector<double>& response : own.table("past"))
                rule.past.emplace_back(response.begin(), response.end());
            return follow_text(cell, theory::suffix_scores_draft(rule));
          }};
}

}  // namespace specsim::judge
