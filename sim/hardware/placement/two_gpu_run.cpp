#include "sim/hardware/placement/two_gpu_run.h"

#include <algorithm>

namespace specsim::placement {

TwoGpuRun::TwoGpuRun(const Generation& generation, engine::Timeline* timeline)
    : Lockstep(generation, timeline), target_lane_(lane("target GPU")), draft_lane_(lane("draft GPU")) {}

Result TwoGpuRun::simulate() {
  target_prefill_ = prefill_latency(cost::Role::target);
  if (draft_runs()) draft_prefill_ = prefill_latency(cost::Role::draft);
  engine_.schedule_after(target_prefill_.total(), [this] { first_token(); });
  return run();
}

void TwoGpuRun::first_token() {
  emit_first();
  spend(&Parts::prefill, target_prefill_.total(), target_prefill_);
  result_.target_busy += target_prefill_.total();
  span(target_lane_, "prefill", SimTime(), target_prefill_.total());
  const Duration drafting = done() ? std::min(draft_prefill_.total(), target_prefill_.total()) : draft_prefill_.total();
  result_.draft_busy += drafting;
  span(draft_lane_, "draft prefill", SimTime(), drafting);
  if (done()) return;
  const SimTime ready = std::max(engine_.now(), SimTime() + draft_prefill_.total());
  spend(&Parts::prefill, ready - engine_.now());
  engine_.schedule_at(ready, [this] { begin(); });
}

}  // namespace specsim::placement
