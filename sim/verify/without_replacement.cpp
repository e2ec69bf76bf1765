#include "sim/verify/recursive_rule.h"
#include "sim/verify/verifier.h"

namespace specsim::verify {

VerifierEntry without_replacement_verifier() {
  return {{"without_replacement",
           "siblings drawn without replacement, one after the other against what is left of the target",
           "Chen et al. (Sequoia), arXiv 2402.12374; Jeon et al. (recursive speculative decoding), arXiv 2402.14160",
           {},
           "Lossless. As multi_draft_recursive, but a rejected sibling also leaves the draft's distribution, which is normalised "
           "anew before the next one is drawn: no sibling repeats another. P(some sibling is accepted) is at most 1 + min over "
           "sets H of (target(H) - P(all siblings in H)), and may exceed the optimum for siblings drawn with replacement."},
          true,
          {.trees = {tokens::Siblings::without_replacement}},
          {},
          [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
          true};  // judges such siblings where none is named
}

}  // namespace specsim::verify
