#include "sim/rounds/draft/length_policy.h"

namespace specsim::draft {

// To add a policy, add one line here and one file in this folder.
#define SPECSIM_POLICIES(X) \
  X(additive)               \
  X(table)                  \
  X(ema_tiers)              \
  X(ratio_tiers)            \
  X(confidence)             \
  X(confidence_roc)         \
  X(entropy)                \
  X(adaedl)                 \
  X(goodput)                \
  X(goodput_per_sequence)   \
  X(throughput_aware)       \
  X(bandit)                 \
  X(specdec_pp)             \
  X(adaptive_verification)  \
  X(oracle)

#define SPECSIM_DECLARE(name) PolicyEntry name##_policy();
SPECSIM_POLICIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<PolicyEntry>& policies() {
#define SPECSIM_ENTRY(name) name##_policy(),
  static config::Registry<PolicyEntry> registry("policy", {SPECSIM_POLICIES(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::draft
