#include "sim/rounds/verify/matching_rule.h"
#include "sim/rounds/verify/verifier.h"

namespace specsim::verify {

VerifierEntry tree_point_mass_verifier() {
  return {{"tree_point_mass",
           "for children that were chosen, not drawn: each is accepted with its own target probability",
           "Li et al. (EAGLE), arXiv 2401.15077; EAGLE-2, arXiv 2406.16858",
           {}},
          true,
          {.trees = {tokens::Siblings::point_mass}},
          {},
          [](const config::Arguments&) { return std::make_unique<MatchingRule>(); },
          true};  // the default for such siblings
}

}  // namespace specsim::verify
