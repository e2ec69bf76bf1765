// Finds the best draft length, or that speculation does not pay, from a cost model and an acceptance curve.
#pragma once

#include "sim/answers/plan/acceptance_curve.h"
#include "sim/answers/plan/gain.h"
#include "sim/hardware/latency/round_time.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace specsim::plan {

struct PlanPoint {
  int draft_length = 0;
  cost::RoundTime time;
  double tokens_per_round = 1.0;
  double speedup = 1.0;
  double tokens_per_second = 0.0;  // of the whole batch
  // Per output token, of all GPUs; NaN if the GPU's power or cost is not known.
  double joules_per_token = std::numeric_limits<double>::quiet_NaN();
  double dollars_per_million = std::numeric_limits<double>::quiet_NaN();  // per million of them
  double watts = std::numeric_limits<double>::quiet_NaN();                // of each GPU
  double power_error = 0.0;                                               // standard error of the logarithm of watts
  // Standard errors of logarithms, by add_errors().
  double time_error = 0.0;        // of the round's time, by the latency model
  double acceptance_error = 0.0;  // of the tokens per round, due to limited data
  Gain gain;                      // the speedup relative to decoding without speculation
};

// The lead of the best draft length over another one.
struct Margin {
  int over = 0;             // the other draft length
  double margin = 0.0;      // difference of the two speedups
  double half_width = 0.0;  // half the width of its 95 % interval, paired over the curve's parts; NaN if exact
};

struct Plan {
  std::vector<PlanPoint> points;  // [draft_length], 0: without speculation; as many as fit into memory
  int best = 0;                   // draft length; 0: do not speculate
  std::vector<Margin> margins;    // lead of the best over its neighbours and over decoding without speculation
  std::vector<int> ties;          // draft lengths that lose to the best by less than the latency model's standard error
  double noise = 0.0;             // the largest such error among them, relative
  [[nodiscard]] const PlanPoint& best_point() const { return points[static_cast<std::size_t>(best)]; }
};

// The fastest draft length above 0; nullptr if no draft fits.
const PlanPoint* fastest_draft(const Plan& plan);

// The longest draft, up to `longest`, whose slots and states fit into memory together with both models and their caches. 0: only
// decoding without speculation fits; none: nothing fits.
std::optional<int> longest_fitting(const cost::CostModel& cost, const cost::Workload& workload, int longest);

// Fills in the errors of each point.
void add_errors(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve, Plan& plan);
// The gain of one draft length over another; errors that both times share cancel.
Gain gain_over(const cost::CostModel& cost, const cost::Workload& workload, const PlanPoint& point, const PlanPoint& other);

// Estimates the latency of every draft length from 0 to the curve's longest() that fits into memory at the workload, and finds
// the fastest. The curve is taken at the workload's context.
Plan make_plan(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve);

// Why speculation pays or not. The last two mean that this is unknown, because memory is too small or the latency table has no
// entry (its edge).
enum class Regime { pays, low_acceptance, expensive_draft, compute_bound, does_not_fit, not_covered };
const char* to_text(Regime regime);

// The smallest constant alpha at which some draft length in 1 .. longest reaches speedup 1, and that draft length; nullopt if
// even alpha 1 does not. `draft_length` above 0: only that one. Latencies are those of make_plan: a plan at that alpha has
// speedup 1, unless the rows to catch up on make the speedup step over 1.
struct BreakEvenAlpha {
  double alpha = 0.0;
  int draft_length = 0;
};
std::optional<BreakEvenAlpha> break_even(const cost::CostModel& cost, const cost::Workload& workload, int longest,
                                         int draft_length = 0);

struct MapCell {
  double batch = 1.0;
  double context = 0.0;
  double alpha = 0.0;
  int best = 0;
  double speedup = 1.0;
  double break_even_alpha = 1.0;  // 2 if there is none
  Regime regime = Regime::pays;
  [[nodiscard]] bool known() const { return regime != Regime::does_not_fit && regime != Regime::not_covered; }
};

// Why speculation loses. The answer is compute_bound or expensive_draft if even a draft with 60 % acceptance would lose:
// whichever of verification's extra time and drafting (including the round's host time) adds more to a round. It is
// low_acceptance if such a draft would win. Throws BadInput if the cost model does not cover the case.
Regime reason_of_loss(const cost::CostModel& cost, const cost::Workload& workload, int longest);
// A cell for every batch, context and alpha (the same at all positions). If known() is false, only batch, context, alpha and
// regime are set.
std::vector<MapCell> make_map(const cost::CostModel& cost, const std::vector<double>& batches,
                              const std::vector<double>& contexts, const std::vector<double>& alphas, int longest,
                              unsigned threads);

// The map at one acceptance curve, a cell for every batch and context. Its alpha is the equivalent one at the best draft length.
std::vector<MapCell> make_own_map(const cost::CostModel& cost, const std::vector<double>& batches,
                                  const std::vector<double>& contexts, const AcceptanceCurve& curve, unsigned threads);

// Largest batch whose kept models and caches fit, exactly; 0: none. kUnlimitedBatch if memory is not modelled, or always
// suffices.
constexpr double kUnlimitedBatch = 1 << 20;
double largest_batch(const cost::CostModel& cost, double context, int look_ahead, cost::Kept kept);

// The slope of this draft length's speedup with alpha (the same at all positions), over .01 around `alpha`.
double speedup_per_alpha(const cost::CostModel& cost, const cost::Workload& workload, int draft_length, double alpha);

}  // namespace specsim::plan
