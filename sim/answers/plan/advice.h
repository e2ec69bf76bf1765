// The complete answer of specsim plan for one workload: the plan, its validity range, its sensitivities, and the commands to
// start a server.
#pragma once

#include "sim/answers/plan/draft_placings.h"
#include "sim/answers/plan/engines.h"
#include "sim/answers/plan/schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace specsim::plan {

// The first of the next few batches above the planned one at which the chosen draft length loses a twentieth of its speedup. A
// few more sequences can start another tile or wave of every matrix product.
struct Cliff {
  double batch = 0.0;
  double speedup = 0.0;       // speedup at that batch with the chosen draft length
  int best = 0;               // best draft length at that batch
  double best_speedup = 0.0;  // speedup at that batch with `best`
};

struct Advice {
  Plan plan;
  std::optional<BreakEvenAlpha> break_even;         // at the draft length with the lowest break-even alpha
  std::optional<BreakEvenAlpha> break_even_chosen;  // at the chosen draft length
  Regime regime = Regime::pays;
  bool longer_do_not_fit = false;  // drafts longer than the plan's do not fit into memory
  // Over batches and contexts around the planned ones; empty if times are not in seconds.
  std::vector<ScanPoint> by_batch;
  std::vector<ScanPoint> by_context;
  LengthGrid by_both;
  std::optional<Cliff> cliff;
  // Sensitivity of the speedup at the chosen draft length; empty if that is 0, or if the cost model cannot compute it.
  double per_alpha = 0.0;                     // change of the speedup per unit of alpha
  std::optional<double> with_more_bandwidth;  // change of the speedup with 10 % more
  std::optional<double> with_more_host_time;  // change of the speedup with 10 % more
  std::optional<cost::MemoryBudget> memory;
  double largest_batch_with_draft = 0.0;
  double largest_batch_without = 0.0;
  std::vector<DraftPlacing> placings;  // of a draft on its own GPU, and of its alternatives
  std::vector<EngineCommand> commands;
  std::vector<std::string> warnings;
};

// Plans the workload, and derives the rest from the same latencies. Times are in the cost model's unit, in seconds if it has
// them.
Advice advise(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve);

}  // namespace specsim::plan
