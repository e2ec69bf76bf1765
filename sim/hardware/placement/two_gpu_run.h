// The start of every run with the draft on a GPU of its own: both prefills at once, then the first round.
#pragma once

#include "sim/hardware/placement/lockstep.h"

namespace specsim::placement {

class TwoGpuRun : public Lockstep {
 public:
  TwoGpuRun(const Generation& generation, engine::Timeline* timeline);
  virtual ~TwoGpuRun() = default;
  Result simulate();

 protected:
  // The first round: both GPUs are free, and every running sequence has its first token.
  virtual void begin() = 0;

  engine::Timeline::Lane target_lane_;
  engine::Timeline::Lane draft_lane_;

 private:
  void first_token();

  PassLatency target_prefill_;
  PassLatency draft_prefill_;
};

}  // namespace specsim::placement
