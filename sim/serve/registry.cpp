#include "sim/serve/arrivals.h"
#include "sim/serve/lengths.h"
#include "sim/serve/policy.h"
#include "sim/serve/scheduler.h"

namespace specsim::serve {

// One line here and one file beside it add a scheduler, a policy, a process of arrivals, a distribution of lengths.
#define SPECSIM_SCHEDULERS(X) X(vllm_v1) X(sglang) X(trtllm) X(static_batch) X(llama_cpp)
#define SPECSIM_POLICIES(X) X(off) X(fixed) X(table) X(goodput) X(adaptive)
#define SPECSIM_ARRIVALS(X) X(poisson) X(gamma) X(deterministic) X(markov_modulated) X(closed) X(sessions) X(trace)
#define SPECSIM_LENGTHS(X) X(fixed) X(uniform) X(lognormal) X(geometric) X(list) X(file)

#define SPECSIM_DECLARE(name) SchedulerEntry name##_scheduler();
SPECSIM_SCHEDULERS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) ServerPolicyEntry name##_policy();
SPECSIM_POLICIES(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) ArrivalsEntry name##_arrivals();
SPECSIM_ARRIVALS(SPECSIM_DECLARE)
#undef SPECSIM_DECLARE
#define SPECSIM_DECLARE(name) LengthsEntry name##_lengths();
SPECSIM_LENGTHS(SPECSIM_DECLARE)
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

config::Registry<ArrivalsEntry>& arrival_processes() {
#define SPECSIM_ENTRY(name) name##_arrivals(),
  static config::Registry<ArrivalsEntry> registry("arrival process", {SPECSIM_ARRIVALS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

config::Registry<LengthsEntry>& length_distributions() {
#define SPECSIM_ENTRY(name) name##_lengths(),
  static config::Registry<LengthsEntry> registry("length distribution", {SPECSIM_LENGTHS(SPECSIM_ENTRY)});
#undef SPECSIM_ENTRY
  return registry;
}

}  // namespace specsim::serve
