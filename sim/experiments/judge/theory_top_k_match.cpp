// Accepts drafts that are among the target's likeliest tokens.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/lossy.h"

namespace specsim::judge {

TheoryEntry top_k_match_theory() {
  return {{"top_k_match", "the first sibling among the target's k likeliest tokens, else the target's own sample", "", {}, ""},
          {"top_k_match"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            BlockRounds rounds(cell);
            if (figures_of(rounds).gap) return {nullptr, "the tree skips ranks"};
            const auto k = static_cast<int>(verifier_arguments(cell).integer("k"));
            const auto admits = [k](const verify::PositionDistributions& distributions) {
              return theory::top_k_acceptance(distributions.target, k);
            };
            return walk_first_admitted(std::move(rounds), admits);
          }};
}

}  // namespace specsim::judge
