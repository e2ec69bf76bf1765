// Block verification of a chain.
#include "sim/experiments/judge/block_enumeration.h"

namespace specsim::judge {

TheoryEntry block_theory() {
  return {{"block",
           "block verification, by the distribution of the product of clipped ratios",
           "Sun et al., arXiv 2403.10444",
           {},
           ""},
          {"block"},
          {},
          [](const spec::Cell& cell) { return enumerate_block_verification(BlockRounds(cell)); }};
}

}  // namespace specsim::judge
