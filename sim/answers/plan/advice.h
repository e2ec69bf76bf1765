// Everything that specsim plan says of one workload: the plan, how far it carries, what it hangs on, and how to start it.
#pragma once

#include "sim/answers/plan/engines.h"
#include "sim/answers/plan/schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// The first batch beyond the planned one, among the next few, at which the chosen draft length loses a twentieth of its speedup:
// a few more sequences can start another tile or wave of every matrix product.
struct Cliff {
  double batch = 0.0;
  double speedup = 0.0;       // speedup at that batch with the chosen draft length
  int best = 0;               // best draft length at that batch
  double best_speedup = 0.0;  // speedup at that batch with `best`
};

struct Advice {
  Plan plan;
  std::optional<BreakEvenAlpha> break_even;         // break-even at the draft length that forgives most
  std::optional<BreakEvenAlpha> break_even_chosen;  // break-even at the chosen draft length
  Regime regime = Regime::pays;
  bool longer_do_not_fit = false;  // drafts that are longer than the plan's do not fit into memory
  // Over batches and contexts beside the planned ones; empty where times are no seconds.
  std::vector<ScanPoint> by_batch;
  std::vector<ScanPoint> by_context;
  std::optional<Cliff> cliff;
  // How the speedup at the chosen draft length changes; empty where that is 0, or where the cost model does not know.
  double per_alpha = 0.0;                     // change of the speedup per unit of alpha
  std::optional<double> with_more_bandwidth;  // change of the speedup with 10 % more
  std::optional<double> with_more_host_time;  // change of the speedup with 10 % more
  std::optional<cost::MemoryBudget> memory;
  double largest_batch_with_draft = 0.0;
  double largest_batch_without = 0.0;
  std::vector<EngineCommand> commands;
  std::vector<std::string> warnings;
};

// Plans the workload, and works out the rest from the same prices. Times are in the cost model's unit, seconds where it knows
// them.
Advice advise(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve);

}  // namespace specsim::plan
