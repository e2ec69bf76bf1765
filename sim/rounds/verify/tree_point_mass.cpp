#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry tree_point_mass_verifier() {
  return {{"tree_point_mass",
           "children that were chosen, not drawn: each a point mass, accepted with its own target probability",
           "Li et al. (EAGLE), arXiv 2401.15077; EAGLE-2, arXiv 2406.16858",
           {},
           "Lossless. Walks down a tree node by node. Recursive rejection against point masses accepts child x with target(x) of "
           "what is left: the target's own sample decides, and the walk goes on where a child has it. P(descend) = the target's "
           "mass on the children. "
           "It pays with a draft that is well aligned and unsure (vLLM issue 40551), and needs no draft "
           "probabilities. It does not pay at high temperature with one path: a chain of argmax tokens was a "
           "third slower than one of drawn tokens at temperature 1 (vLLM pull request 41044, DeepSeek-V4-Flash "
           "with its MTP module)."},
          true,
          {.trees = {tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); },
          true};  // judges such siblings where none is named
}

}  // namespace specsim::verify
