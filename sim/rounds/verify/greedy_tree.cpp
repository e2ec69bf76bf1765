#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry greedy_tree_verifier() {
  return {{"greedy_tree", "follows the target's argmax through the tree", "Miao et al. (SpecInfer), arXiv 2305.09781", {}},
          true,
          {.one_hot_target = true,
           .trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
