#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry greedy_tree_verifier() {
  return {{"greedy_tree",
           "the path of the target's argmax through the tree",
           "Miao et al. (SpecInfer), arXiv 2305.09781",
           {},
           "Lossless for a target at temperature 0, and refused for any other. Walks down a tree node by node. Takes every tree, "
           "drawn or chosen: whichever child is the argmax is accepted. "
           "It pays at temperature 0 and small batch: SpecInfer's tree gave Llama-2-7B 2.8 to 3.8 times plain "
           "decoding at 0, 2.1 to 2.5 at .6 by sampling (Sequoia's authors, A100, batch 1). Where a batch fills "
           "the GPU a tree's rows cost more than they bring: simulated in docs/results/time_and_methods.md."},
          true,
          {.one_hot_target = true,
           .trees = {tokens::Siblings::independent, tokens::Siblings::without_replacement, tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); }};
}

}  // namespace specsim::verify
