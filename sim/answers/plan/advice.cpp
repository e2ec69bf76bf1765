#include "sim/answers/plan/advice.h"

#include "sim/foundation/base/error.h"

#include <algorithm>

namespace specsim::plan {

namespace {

std::optional<Cliff> cliff_of(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve,
                              const Plan& plan) {
  for (double batch = workload.batch + 1.0; batch <= std::min(1.25 * workload.batch + 1.0, workload.batch + 16.0); batch += 1.0) {
    const cost::Workload next{batch, workload.context};
    if (longest_fitting(cost, next, plan.best) != plan.best) return std::nullopt;
    try {
      const Plan other = make_plan(cost, next, curve);
      const double there = other.points[static_cast<std::size_t>(plan.best)].speedup;
      if (there <= 0.95 * plan.best_point().speedup) return Cliff{batch, there, other.best, other.best_point().speedup};
    } catch (const BadInput&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Advice advise(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve) {
  Advice advice;
  advice.plan = make_plan(cost, workload, curve);
  add_errors(cost, workload, curve, advice.plan);
  const Plan& plan = advice.plan;
  const int best = plan.best;
  const int longest = static_cast<int>(plan.points.size()) - 1;
  advice.longer_do_not_fit = longest < curve.longest();
  advice.break_even = break_even(cost, workload, std::max(1, longest));
  if (best > 0)
    advice.break_even_chosen = break_even(cost, workload, best, best);
  else
    advice.regime = longest < 1 ? Regime::does_not_fit : reason_of_loss(cost, workload, longest);
  if (cost.in_seconds()) {
    advice.by_batch = scan(cost, curve, fine_batches(1, 1024), [&](double x) { return cost::Workload{x, workload.context}; });
    smooth(advice.by_batch);
    for (ScanPoint& point : advice.by_batch)
      if (is_shown(point.at)) add_errors(cost, {point.at, workload.context}, curve, point.plan);
    advice.by_context = scan(cost, curve, doubling(512, 131072), [&](double x) { return cost::Workload{workload.batch, x}; });
    for (ScanPoint& point : advice.by_context)
      if (is_shown(point.at)) add_errors(cost, {workload.batch, point.at}, curve, point.plan);
    advice.by_both = scan_lengths(cost, curve, {1.0, 4.0, 16.0, 64.0, 256.0}, doubling(512, 131072));
    if (best > 0) advice.cliff = cliff_of(cost, workload, curve, plan);
  }
  if (best > 0) {
    const PlanPoint& point = plan.best_point();
    const double full = curve.full_rate[static_cast<std::size_t>(best)];
    const auto changed = [&](const cost::CostModel& other) {
      return cost::speedup(cost::round_time(other, workload, best, full), point.tokens_per_round) - point.speedup;
    };
    advice.per_alpha = speedup_per_alpha(cost, workload, best, curve.equivalent_alpha(best));
    if (const auto faster = cost.scaled(1.1, 1.0)) advice.with_more_bandwidth = changed(*faster);
    if (const auto slower = cost.scaled(1.0, 1.1)) advice.with_more_host_time = changed(*slower);
  }
  advice.placings = draft_placings(cost, workload, curve, plan);
  advice.memory = cost.memory_budget(workload, best + 1, best > 0 ? cost::Kept::both : cost::Kept::target);
  advice.largest_batch_with_draft = largest_batch(cost, workload.context, std::max(best, 1) + 1, cost::Kept::both);
  advice.largest_batch_without = largest_batch(cost, workload.context, 1, cost::Kept::target);
  if (const cost::Deployment* deployment = cost.deployment()) {
    advice.warnings = pair_warnings(*deployment, {curve.recorded_target, curve.recorded_draft});
    if (best > 0) advice.commands = engine_commands(*deployment, best, workload.batch, workload.context);
  }
  return advice;
}

}  // namespace specsim::plan
