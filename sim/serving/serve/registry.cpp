#include "sim/serving/serve/policy.h"
#include "sim/serving/serve/scheduler.h"

namespace specsim::serve {

// To add a scheduler or a policy, add one line here and one file in this folder.
#define SPECSIM_SCHEDULERS(X) X(vllm_v1) X(sglang) X(trtllm) X(static_batch) X(llama_cpp)
#define SPECSIM_POLICIES(X) \
  X(off) X(fixed) X(table) X(goodput) X(throughput_aware) X(adaptive) X(speculation_gate) X(adaptive_verification) X(by_request)

#define SPECSIM_DECLARE(name) SchedulerEntry name##_scheduler();
SPECSIM_SCHEDULERS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) ServerPolicyEntry name##_policy();
SPECSIM_POLICIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE

config::Registry<SchedulerEntry>& schedulers() {
#define SPECSIM_ENTRY(name) name##_scheduler(),
  static config::Registry<SchedulerEntry> registry("scheduler", {SPECSIM_SCHEDULERS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<ServerPolicyEntry>& server_policies() {
#define SPECSIM_ENTRY(name) name##_policy(),
  static config::Registry<ServerPolicyEntry> registry("server policy", {SPECSIM_POLICIES(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::serve
