#include "sim/rounds/verify/recursive_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry without_replacement_verifier() {
  return {{"without_replacement",
           "siblings drawn without replacement, one after the other against what is left of the target",
           "Chen et al. (Sequoia), arXiv 2402.12374; Jeon et al. (recursive speculative decoding), arXiv 2402.14160",
           {},
           "Lossless. As multi_draft_recursive, but a rejected sibling also leaves the draft's distribution, which is normalised "
           "anew before the next one is drawn: no sibling repeats another. P(some sibling is accepted) is at most 1 + min over "
           "sets H of (target(H) - P(all siblings in H)), and may exceed the optimum for siblings drawn with replacement. "
           "It pays over siblings with replacement: 2.7 to 3.2 times plain decoding on Sequoia's trees against "
           "2.1 to 2.5 on SpecInfer's (Llama-2-7B at temperature .6 on an A100, Sequoia's authors); simulated on "
           "one tree, 3.07 tokens a round against 2.85 (configs/examples/methods/paths.yaml). It does not where "
           "a batch fills the GPU, as all trees."},
          true,
          {.trees = {tokens::Siblings::without_replacement}},
          {},
          [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
          true};  // judges such siblings where none is named
}

}  // namespace specsim::verify
