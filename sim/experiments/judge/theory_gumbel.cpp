// Draft and target that sample with the same noise.
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/judgement.h"

#include <fmt/format.h>

namespace specsim::judge {

TheoryEntry gumbel_theory() {
  return {{"gumbel",
           "alpha = sum over x of 1 / sum over y of max(target(y)/target(x), draft(y)/draft(x))",
           "Daliri, Musco, Suresh, arXiv 2408.07978",
           {},
           ""},
          {"gumbel"},
          {},
          [](const spec::Cell& cell) -> Coverage {
            constexpr int kMostTokensSquared = 4096;  // the sum compares each token with every other
            if (cell.vocab > kMostTokensSquared)
              return {nullptr, fmt::format("vocabulary {}: too many tokens to compare each with every other", cell.vocab)};
            return walk(BlockRounds(cell), {[](const verify::PositionDistributions& distributions, int) {
                          return std::vector<std::vector<double>>{
                              theory::judge_gumbel(distributions.target, distributions.drafted).accepted};
                        }});
          }};
}

}  // namespace specsim::judge
