// The places of a draft, side by side: on the target's GPU, on its own GPU in turn, or there while the target verifies.
#pragma once

#include "sim/answers/plan/planner.h"

#include <string>
#include <vector>

namespace specsim::plan {

struct DraftPlacing {
  std::string gpu;       // the draft's
  std::string way;       // "with the target", "in turn", "overlapped"
  std::string why_not;   // no figures below: the models do not fit
  int draft_length = 0;  // the fastest above 0
  double tokens_per_round = 1.0;
  double tokens_per_second = 0.0;  // of the whole batch
  double speedup = 1.0;            // over decoding without speculation, with its error
  Gain gain;
  Gain over_target_gpu;  // over the first placing, if that fits
};

// A round without bonus tokens in which the draft, on its own GPU, writes the next block while the target verifies this one.
// Each sequence accepts its whole block with probability `full_rate`, independently of the others. With n of the batch's B
// sequences that do, the round takes
//   n = B      max(verify, ahead)
//   0 < n < B  max(verify, ahead) + draft(B - n)
//   n = 0      verify + draft(B)
// where draft() includes the messages, and ahead is draft(B) one block later (PEARL, arXiv 2408.11850; at B = 1 its formula).
// `draft` of the result is what the verification does not hide.
cost::RoundTime overlapped_time(const cost::CostModel& cost, const cost::Workload& workload, int draft_length, double full_rate);

// The three, in that order; empty if the draft has no GPU of its own. `plan`: of the draft on its own GPU in turn.
std::vector<DraftPlacing> draft_placings(const cost::CostModel& cost, const cost::Workload& workload,
                                         const AcceptanceCurve& curve, const Plan& plan);

}  // namespace specsim::plan
