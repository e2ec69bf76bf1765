// Block verification that keeps the whole block by the ratio of joint probabilities.
#include "sim/experiments/judge/block_enumeration.h"

namespace specsim::judge {

TheoryEntry hsd_theory() {
  return {{"hsd",
           "hierarchical speculative decoding's program, by every drafted path",
           "Zhou et al., arXiv 2601.05724, and its program",
           {},
           ""},
          {"hsd"},
          {},
          [](const spec::Cell& cell) { return enumerate_block_verification(BlockRounds(cell), true); }};
}

}  // namespace specsim::judge
