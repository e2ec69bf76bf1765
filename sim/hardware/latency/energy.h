// The energy of a pass: each part of its time at the power that the board draws in it.
#pragma once

#include "sim/hardware/gpu/hardware.h"
#include "sim/hardware/latency/operation.h"
#include "sim/hardware/latency/round_time.h"

#include <optional>

namespace specsim::cost {

// A round's joules of all GPUs, watts of each (their mean if the draft has its own), and the standard error of their logarithm.
struct Spent {
  double joules = 0.0;
  double watts = 0.0;
  double error = 0.0;
};
// Nothing if the GPU's power is not known.
std::optional<Spent> spent_in(const CostModel& cost, const RoundTime& round);
// US dollars of all GPUs for so many seconds; nothing if the cost per hour is not known. `drafts`: a GPU of the draft's own
// counts.
std::optional<double> dollars(const CostModel& cost, double seconds, bool drafts = false);
// Of the target's GPU; nullptr: its power is not known.
const PowerDraw* power_of(const CostModel& cost);
// GPUs that share the target, and those of the draft's own if it `drafts`; 1 where the cost model knows none.
double gpus_of(const CostModel& cost, bool drafts = false);
// Watts of all these GPUs if they are idle; nothing if the power of one is not known.
std::optional<double> idle_watts(const CostModel& cost, bool drafts);
// GPUs that compute a pass of the draft, for each of the target's: 1 if they are the same.
double draft_gpus_per_target_gpu(const CostModel& cost);

// The work of a pass on one GPU, whatever time it takes.
struct PassWork {
  double bytes = 0.0;       // weights and keys that it reads
  double operations = 0.0;  // multiplications and additions
  void add(double times, const PassWork& other) {
    bytes += times * other.bytes;
    operations += times * other.operations;
  }
};
// Of an operation once.
PassWork work_of(const Operation& operation);

// The pass under the GPU's power limit: with its joules, and longer where the user's cap lowers the clock. `work`: what it does.
PassTime with_energy(const Hardware& hardware, const PassTime& pass, const PassWork& work);

}  // namespace specsim::cost
