// Rules that accept draft tokens in place of the target's: speculative cascades, and a judge of rejected tokens.
#include "sim/experiments/judge/method.h"
#include "sim/experiments/judge/tree_walk.h"
#include "sim/rounds/theory/lossy.h"

namespace specsim::judge {

TheoryEntry speculative_cascade_theory() {
  return {{"speculative_cascade",
           "sum min(cascade, draft) accepted, (cascade - draft)+ after a rejection",
           "Narasimhan et al., arXiv 2405.19261",
           {},
           ""},
          {"speculative_cascade"},
          {},
          [](const spec::Cell& cell) {
            const std::string rule = verifier_arguments(cell).text("rule");
            const double alpha = verifier_arguments(cell).number("alpha");
            const auto cascade = [rule, alpha](const verify::PositionDistributions& distributions) {
              return theory::cascade_distribution(distributions.target, distributions.drafted, rule, alpha);
            };
            const auto admits = [cascade](const verify::PositionDistributions& distributions) {
              return theory::lenience_acceptance(cascade(distributions), distributions.drafted, 1.0);
            };
            const auto residual = [cascade](const verify::PositionDistributions& distributions) {
              return theory::residual_distribution(cascade(distributions), distributions.drafted);
            };
            return walk(BlockRounds(cell), {[cascade](const verify::PositionDistributions& distributions, int /*children*/) {
                                              return std::vector<std::vector<double>>{
                                                  theory::judge_token(cascade(distributions), distributions.drafted).accepted};
                                            },
                                            TokenwiseRule{admits, residual}});
          }};
}

TheoryEntry judge_decoding_theory() {
  return {{"judge_decoding",
           "min(target, draft) + rate (draft - target)+ accepted, (target - draft)+ after a rejection",
           "Bachmann et al., arXiv 2501.19309",
           {},
           ""},
          {"judge_decoding"},
          {},
          [](const spec::Cell& cell) {
            const double rate = verifier_arguments(cell).number("rate");
            return walk_admitting(BlockRounds(cell), [rate](const verify::PositionDistributions& distributions) {
              return theory::judge_acceptance(distributions.target, distributions.drafted, rate);
            });
          }};
}

}  // namespace specsim::judge
