// Chains whose draft model itself decodes speculatively. The tokens have the same distribution; only the passes are fewer.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"

namespace specsim::judge {

TheoryEntry cs_drafting_theory() {
  return {{"cs_drafting",
           "a draft's own draft does not change its tokens: rejection sampling of a chain, independent of the passes",
           "Chen et al. (Cascade Speculative Drafting), arXiv 2312.11462; Leviathan et al., arXiv 2211.17192",
           {},
           ""},
          {"token", "multi_draft_recursive"},
          {"cs_drafting"},
          walk_drawn_chain};
}

}  // namespace specsim::judge
