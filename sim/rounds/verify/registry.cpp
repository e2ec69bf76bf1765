#include "sim/foundation/base/check.h"
#include "sim/rounds/verify/verifier.h"

#include <algorithm>

namespace specsim::verify {

// To add a verifier, add one line here and one file in this folder.
#define SPECSIM_VERIFIERS(X) \
  X(token)                   \
  X(greedy)                  \
  X(sample_match)            \
  X(soft_argmax)             \
  X(block)                   \
  X(hsd)                     \
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

const VerifierEntry& usual_verifier(std::optional<tokens::Siblings> siblings) {
  const auto& entries = verifiers().entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const VerifierEntry& entry) {
    const std::vector<tokens::Siblings>& trees = entry.demands.trees;
    return entry.usual && (siblings ? std::find(trees.begin(), trees.end(), *siblings) != trees.end() : trees.empty());
  });
  SPECSIM_CHECK(found != entries.end(), "no usual verifier of siblings {}", siblings ? static_cast<int>(*siblings) : -1);
  return *found;
}

}  // namespace specsim::verify
