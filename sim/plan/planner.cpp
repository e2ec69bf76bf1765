#include "sim/plan/planner.h"

#include "sim/base/check.h"
#include "sim/base/parallel.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::plan {

namespace {

constexpr double kDecentDraft = 0.6;  // alpha that a draft of the same family usually reaches

std::vector<double> powers(double alpha, int longest) {
  std::vector<double> list = {1.0};
  for (int k = 1; k <= longest; ++k) list.push_back(list.back() * alpha);
  return list;
}

// Speedups at constant alpha by draft length. Passes are priced once, for full rate 0: the token to catch up with moves a
// speedup by less than the models are good for, and an alpha is searched for here.
struct Ladder {
  double plain = 0.0;
  std::vector<double> total;    // [draft_length]
  std::vector<double> draft;    // with the round's overhead
  std::vector<double> inflate;  // verification beyond a plain pass

  [[nodiscard]] double speedup(double alpha, int draft_length) const {
    const std::vector<double> power = powers(alpha, draft_length);
    double tokens = 0.0;
    for (const double p : power) tokens += p;
    return tokens * plain / total[static_cast<std::size_t>(draft_length)];
  }
};

Ladder ladder_of(const cost::CostModel& cost, const cost::Workload& workload, int longest) {
  Ladder ladder;
  double draft = 0.0;
  ladder.plain = cost.pass(cost::Role::target, {workload.batch, 1.0, workload.context, 1.0}).total();
  ladder.total = {ladder.plain};
  ladder.draft = {0.0};
  ladder.inflate = {0.0};
  const double overhead = cost.round_overhead(workload.batch);
  for (int k = 1; k <= longest; ++k) {
    draft += cost.draft_pass(workload, k - 1, 0.0).total();
    const double tokens = k + 1.0;
    const double verify = cost.pass(cost::Role::target, {workload.batch, tokens, workload.context, tokens}).total();
    ladder.total.push_back(draft + verify + overhead);
    ladder.draft.push_back(draft + overhead);
    ladder.inflate.push_back(verify - ladder.plain);
  }
  return ladder;
}

std::optional<BreakEvenAlpha> break_even_of(const Ladder& ladder, int draft_length) {
  std::optional<BreakEvenAlpha> best;
  const int last = static_cast<int>(ladder.total.size()) - 1;
  for (int k = draft_length > 0 ? draft_length : 1; k <= (draft_length > 0 ? draft_length : last); ++k) {
    const double ceiling = best ? best->alpha : 1.0;
    if (ladder.speedup(ceiling, k) < 1.0) continue;  // tokens per round rise with alpha: it cannot be lower here
    double low = 0.0;
    double high = ceiling;
    for (int i = 0; i < 50; ++i) {
      const double middle = 0.5 * (low + high);
      (ladder.speedup(middle, k) < 1.0 ? low : high) = middle;
    }
    if (!best || high < best->alpha) best = BreakEvenAlpha{high, k};
  }
  return best;
}

}  // namespace

Plan make_plan(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve) {
  Plan plan;
  for (int k = 0; k <= curve.longest(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    PlanPoint point;
    point.draft_length = k;
    point.time = cost::round_time(cost, workload, k, k > 0 ? curve.full_rate[at] : 0.0);
    point.tokens_per_round = curve.tokens_per_round[at];
    point.speedup = cost::speedup(point.time, point.tokens_per_round);
    point.tokens_per_second = workload.batch * point.tokens_per_round / point.time.total();
    if (point.speedup > (plan.points.empty() ? 0.0 : plan.best_point().speedup)) plan.best = k;
    plan.points.push_back(point);
  }
  std::vector<int> others = {0};
  if (plan.best > 1) others.push_back(plan.best - 1);
  if (plan.best < curve.longest()) others.push_back(plan.best + 1);
  for (const int other : others) {
    if (other == plan.best) continue;
    const PlanPoint& a = plan.best_point();
    const PlanPoint& b = plan.points[static_cast<std::size_t>(other)];
    Margin margin{other, a.speedup - b.speedup, std::numeric_limits<double>::quiet_NaN()};
    if (curve.parts.size() > 1) {
      // Parts share their random numbers (or requests) over draft lengths: their differences vary less than they do.
      const auto n = static_cast<double>(curve.parts.size());
      double sum = 0.0;
      double squares = 0.0;
      for (const std::vector<double>& part : curve.parts) {
        const double d = part[static_cast<std::size_t>(plan.best)] * a.speedup / a.tokens_per_round -
                         part[static_cast<std::size_t>(other)] * b.speedup / b.tokens_per_round;
        sum += d;
        squares += d * d;
      }
      const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1.0));
      const boost::math::students_t distribution(n - 1.0);
      margin.half_width = boost::math::quantile(boost::math::complement(distribution, 0.025)) * std::sqrt(variance / n);
    }
    plan.margins.push_back(margin);
  }
  return plan;
}

const char* to_text(Regime regime) {
  switch (regime) {
    case Regime::pays:
      return "pays";
    case Regime::low_acceptance:
      return "low_acceptance";
    case Regime::expensive_draft:
      return "expensive_draft";
    case Regime::compute_bound:
      return "compute_bound";
    case Regime::does_not_fit:
      return "does_not_fit";
    case Regime::not_covered:
      return "not_covered";
  }
  return "";
}

std::optional<BreakEvenAlpha> break_even(const cost::CostModel& cost, const cost::Workload& workload, int longest,
                                         int draft_length) {
  return break_even_of(ladder_of(cost, workload, std::max(longest, draft_length)), draft_length);
}

namespace {

Regime losing_regime(const Ladder& ladder, const std::optional<BreakEvenAlpha>& even) {
  if (even && even->alpha <= kDecentDraft) return Regime::low_acceptance;
  const auto at = static_cast<std::size_t>(even ? even->draft_length : 1);
  return ladder.inflate[at] > ladder.draft[at] ? Regime::compute_bound : Regime::expensive_draft;
}

MapCell map_cell_of(const Ladder& ladder, const std::optional<BreakEvenAlpha>& even, const cost::Workload& workload,
                    double alpha) {
  MapCell cell{workload.batch, workload.context, alpha};
  for (int k = 1; k < static_cast<int>(ladder.total.size()); ++k) {
    const double speedup = ladder.speedup(alpha, k);
    if (speedup > cell.speedup) {
      cell.speedup = speedup;
      cell.best = k;
    }
  }
  cell.break_even_alpha = even ? even->alpha : 2.0;
  if (cell.best > 0) return cell;
  cell.regime = losing_regime(ladder, even);
  return cell;
}

}  // namespace

Regime why_it_loses(const cost::CostModel& cost, const cost::Workload& workload, int longest) {
  const Ladder ladder = ladder_of(cost, workload, longest);
  return losing_regime(ladder, break_even_of(ladder, 0));
}

std::vector<MapCell> make_map(const cost::CostModel& cost, const std::vector<double>& batches,
                              const std::vector<double>& contexts, const std::vector<double>& alphas, int longest,
                              unsigned threads) {
  std::vector<MapCell> cells(batches.size() * contexts.size() * alphas.size());
  for_each(batches.size() * contexts.size(), threads, [&](std::size_t at) {
    const cost::Workload workload{batches[at / contexts.size()], contexts[at % contexts.size()]};
    const auto column = cells.begin() + static_cast<std::ptrdiff_t>(at * alphas.size());
    const auto unknown = [&](Regime why) {
      std::transform(alphas.begin(), alphas.end(), column,
                     [&](double alpha) { return MapCell{workload.batch, workload.context, alpha, 0, 0.0, 0.0, why}; });
    };
    const auto memory = cost.memory_budget(workload, 2, cost::Kept::both);
    if (memory && !memory->fits()) {
      unknown(Regime::does_not_fit);
      return;
    }
    try {
      const Ladder ladder = ladder_of(cost, workload, longest);
      const auto even = break_even_of(ladder, 0);
      std::transform(alphas.begin(), alphas.end(), column,
                     [&](double alpha) { return map_cell_of(ladder, even, workload, alpha); });
    } catch (const BadInput&) {
      unknown(Regime::not_covered);
    }
  });
  return cells;
}

double largest_batch(const cost::CostModel& cost, double context, int look_ahead, cost::Kept kept) {
  double batch = 0.0;
  for (double next = 1.0; next <= 1 << 20; next *= 2.0) {
    const auto memory_budget = cost.memory_budget({next, context}, look_ahead, kept);
    if (memory_budget && !memory_budget->fits()) break;
    batch = next;
  }
  return batch;
}

}  // namespace specsim::plan
