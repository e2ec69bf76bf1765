#include "sim/rounds/verify/recursive_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry multi_draft_recursive_verifier() {
  return {{"multi_draft_recursive",
           "judges siblings of a tree one after another against the target's remaining mass",
           "Miao et al. (SpecInfer), arXiv 2305.09781; Chen et al. (Sequoia), arXiv 2402.12374, on the same without replacement",
           {}},
          true,
          {.trees = {tokens::Siblings::independent}},
          {},
          [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
          true};  // the default for such siblings
}

}  // namespace specsim::verify
