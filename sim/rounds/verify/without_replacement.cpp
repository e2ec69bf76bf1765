#include "sim/rounds/verify/recursive_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry without_replacement_verifier() {
  return {{"without_replacement",
           "like recursive rejection, for siblings drawn without replacement, so that no sibling repeats another",
           "Chen et al. (Sequoia), arXiv 2402.12374; Jeon et al. (recursive speculative decoding), arXiv 2402.14160",
           {}},
          true,
          {.trees = {tokens::Siblings::without_replacement}},
          {},
          [](const config::Arguments&) { return std::make_unique<RecursiveRule>(); },
          true};  // the default for such siblings
}

}  // namespace specsim::verify
