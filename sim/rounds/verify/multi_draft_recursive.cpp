#include "sim/rounds/verify/recursive_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry multi_draft_recursive_verifier() {
  return {
      {"multi_draft_recursive",
       "siblings drawn with replacement, one after the other against what is left of the target",
       "Miao et al. (SpecInfer), arXiv 2305.09781; Chen et al. (Sequoia), arXiv 2402.12374, on the same without replacement",
       {},
       "Lossless. At each node of the tree: sibling x is accepted with min(1, residual(x)/draft(x)), where the residual starts "
       "as the target and becomes max(residual - draft, 0), normalised, with every rejection; after the last one the final "
       "token comes from it. P(some sibling is accepted) = 1 - prod (1 - alpha_k), alpha_k = sum min(residual_k, draft). On a "
       "chain it is the token verifier. "
       "It pays at small batch: SpecInfer's tree gave Llama-2-7B 2.1 to 2.5 times plain decoding at "
       "temperature .6 (Sequoia's authors, A100). It does not against siblings without replacement, which "
       "gave 2.7 to 3.2 there on Sequoia's trees; simulated on one tree, 2.85 tokens a round against 3.07 "
       "(configs/examples/methods/paths.yaml)."},
      true,
      {.trees = {tokens::Siblings::independent}},
      {},
      [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
      true};  // judges such siblings where none is named
}

}  // namespace specsim::verify
