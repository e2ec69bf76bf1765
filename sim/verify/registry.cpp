#include "sim/verify/verifier.h"

namespace specsim::verify {

// One line here and one file beside it add a verifier.
#define SPECSIM_VERIFIERS(X) \
  X(token)                   \
  X(greedy)                  \
  X(sample_match)            \
  X(soft_argmax)             \
  X(block)                   \
  X(multi_draft_recursive)   \
  X(without_replacement)     \
  X(kseq)                    \
  X(optimal_transport)       \
  X(tree_point_mass)         \
  X(greedy_tree)             \
  X(traversal)               \
  X(typical)                 \
  X(typical_medusa)          \
  X(lenience)                \
  X(top_k_match)             \
  X(gumbel)                  \
  X(relaxed_threshold)       \
  X(relaxed_top_n)           \
  X(speculative_cascade)     \
  X(judge_decoding)          \
  X(greedy_multi_path)       \
  X(spec_hub)

#define SPECSIM_DECLARE(name) VerifierEntry name##_verifier();
SPECSIM_VERIFIERS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<VerifierEntry>& verifiers() {
#define SPECSIM_ENTRY(name) name##_verifier(),
  static config::Registry<VerifierEntry> registry("verifier", {SPECSIM_VERIFIERS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::verify
