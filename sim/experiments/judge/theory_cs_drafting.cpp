// Chains whose draft model itself decodes speculatively. The tokens have the same distribution; only the passes are fewer.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/foundation/base/index.h"
#include "sim/rounds/theory/multi_draft.h"

namespace specsim::judge {

TheoryEntry cs_drafting_theory() {
  return {{"cs_drafting",
           "a draft's own draft does not change its tokens: rejection sampling of a chain, independent of the passes",
           "Chen et al. (Cascade Speculative Drafting), arXiv 2312.11462; Leviathan et al., arXiv 2211.17192",
           {},
           ""},
          {"token", "multi_draft_recursive"},
          {"cs_drafting"},
          [](const spec::Cell& cell) {
            BlockRounds rounds(cell);
            for (int node = 0; node < cell.draft_length(); ++node) rounds.tree.add(node, 0);
            rounds.ranks.assign(index_of(cell.draft_length()), 1);
            return walk(std::move(rounds), {[](const verify::PositionDistributions& distributions, int children) {
                          return theory::judge_recursive(distributions.target, distributions.drafted, children).by_token;
                        }});
          }};
}

}  // namespace specsim::judge
