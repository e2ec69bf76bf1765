// Drafts copied from the first occurrence of the text's longest repeated suffix.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/text_enumeration.h"
#include "sim/rounds/theory/chosen_trees.h"

namespace specsim::judge {

TheoryEntry sam_decoding_theory() {
  return {{"sam_decoding",
           "the tokens after the first occurrence of the text's longest repeated suffix, over every text",
           "Hu et al. (SAM Decoding), arXiv 2411.10666",
           {},
           ""},
          {"tree_point_mass", "greedy_tree"},
          {"sam_decoding"},
          [](const spec::Cell& cell) -> Coverage {
            const config::Arguments& own = drafter_arguments(cell);
            if (own.text("otherwise") != "nothing")
              return {nullptr,
                      "the drafter reuses the target's predictions for earlier tokens, and theory covers only copies (otherwise: "
                      "nothing)"};
            theory::SamDraft rule;
            rule.draft_length = static_cast<int>(own.integer("draft_length"));
            rule.threshold = static_cast<int>(own.integer("threshold"));
            rule.bias = own.number("bias");
            if (own.has("corpus"))
              for (const std::vector<double>& document : own.table("corpus"))
                rule.corpus.emplace_back(document.begin(), document.end());
            return follow_text(cell, theory::sam_draft(rule));
          }};
}

}  // namespace specsim::judge
