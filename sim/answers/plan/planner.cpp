#include "sim/answers/plan/planner.h"

#include "sim/answers/plan/latency_noise.h"
#include "sim/foundation/base/bisect.h"
#include "sim/foundation/base/check.h"
#include "sim/foundation/base/parallel.h"
#include "sim/foundation/report/intervals.h"
#include "sim/hardware/latency/energy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace specsim::plan {

namespace {

constexpr double kDecentDraft = 0.6;  // usual alpha of a draft from the same model family

std::vector<double> powers(double alpha, int longest) {
  std::vector<double> list = {1.0};
  for (int k = 1; k <= longest; ++k) list.push_back(list.back() * alpha);
  return list;
}

// Speedups at constant alpha by draft length, with latencies estimated as in a plan. Only the token to catch up on depends on
// alpha, so all other latencies are estimated once.
class Ladder {
 public:
  Ladder(const cost::CostModel& cost, const cost::Workload& workload, int longest) : cost_(cost), workload_(workload) {
    for (int k = 0; k <= longest; ++k) rounds_.push_back(cost::round_time(cost, workload, k, 0.0));
  }
  [[nodiscard]] int longest() const { return static_cast<int>(rounds_.size()) - 1; }
  [[nodiscard]] double speedup(double alpha, int draft_length) const {
    const std::vector<double> power = powers(alpha, draft_length);
    double tokens = 0.0;
    for (const double p : power) tokens += p;
    const cost::RoundTime& round = rounds_[static_cast<std::size_t>(draft_length)];
    return tokens * round.plain.total() / (round.total() + catch_up(power.back(), draft_length));
  }
  // The time that a round adds to a pass without speculation by drafting (including host time between passes), and by verifying
  // more than one token.
  [[nodiscard]] double drafting(double alpha, int draft_length) const {
    const cost::RoundTime& round = rounds_[static_cast<std::size_t>(draft_length)];
    return round.draft.total() + round.overhead + catch_up(powers(alpha, draft_length).back(), draft_length);
  }
  [[nodiscard]] double inflation(int draft_length) const {
    const cost::RoundTime& round = rounds_[static_cast<std::size_t>(draft_length)];
    return round.verify.total() - round.plain.total();
  }

 private:
  [[nodiscard]] double catch_up(double full_rate, int draft_length) const {
    if (draft_length == 0) return 0.0;
    return cost::catch_up_time(cost_, workload_, cost_.drafts_at_once() ? draft_length : 1.0, full_rate).total();
  }
  const cost::CostModel& cost_;
  cost::Workload workload_;
  std::vector<cost::RoundTime> rounds_;  // [draft_length], for rounds that do not accept every draft
};

// The smallest alpha in [0, highest] with speedup 1 at this draft length. Rows to catch up on are whole numbers, so the speedup
// may step down as alpha grows. A grid finds the first interval that reaches 1, bisection finds the place.
std::optional<double> least_alpha(const Ladder& ladder, int draft_length, double highest) {
  constexpr int kSteps = 64;
  constexpr int kHalvings = 50;
  const auto loses = [&](double alpha) { return ladder.speedup(alpha, draft_length) < 1.0; };
  double below = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double above = highest * i / kSteps;
    if (!loses(above)) return bisect(below, above, loses, kHalvings).high;
    below = above;
  }
  return std::nullopt;
}

std::optional<BreakEvenAlpha> break_even_of(const Ladder& ladder, int draft_length) {
  std::optional<BreakEvenAlpha> best;
  for (int k = draft_length > 0 ? draft_length : 1; k <= (draft_length > 0 ? draft_length : ladder.longest()); ++k)
    if (const auto alpha = least_alpha(ladder, k, best ? best->alpha : 1.0); alpha && (!best || *alpha < best->alpha))
      best = BreakEvenAlpha{*alpha, k};
  return best;
}

}  // namespace

namespace {

void find_ties(const cost::CostModel& cost, const cost::Workload& workload, Plan& plan) {
  const PlanPoint& best = plan.best_point();
  const auto estimate = [&](const PlanPoint& point) -> RoundEstimate {
    return {&cost, workload, point.draft_length + 1.0, point.time};
  };
  for (const PlanPoint& point : plan.points) {
    if (point.draft_length == plan.best) continue;
    const double lost = std::log(best.speedup / point.speedup);
    constexpr double kMostNoise = 0.5;  // a larger loss is never a tie
    if (!(lost < kMostNoise)) continue;
    const double noise = latency_noise(estimate(best), estimate(point));
    if (lost >= noise) continue;
    plan.ties.push_back(point.draft_length);
    plan.noise = std::max(plan.noise, noise);
  }
}

}  // namespace

const PlanPoint* fastest_draft(const Plan& plan) {
  if (plan.points.size() < 2) return nullptr;
  return &*std::max_element(plan.points.begin() + 1, plan.points.end(),
                            [](const PlanPoint& a, const PlanPoint& b) { return a.speedup < b.speedup; });
}

Gain gain_over(const cost::CostModel& cost, const cost::Workload& workload, const PlanPoint& point, const PlanPoint& other) {
  const RoundEstimate own{&cost, workload, point.draft_length + 1.0, point.time};
  const RoundEstimate its{&cost, workload, other.draft_length + 1.0, other.time};
  // Tokens per round of two lengths come from the same rounds, so the longer one's error includes the shorter one's.
  return {std::log(point.speedup / other.speedup),
          std::hypot(latency_noise(own, its), std::abs(point.acceptance_error - other.acceptance_error))};
}

void add_errors(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve, Plan& plan) {
  for (PlanPoint& point : plan.points) {
    const auto at = static_cast<std::size_t>(point.draft_length);
    if (curve.parts.size() > 1) {
      std::vector<double> tokens;
      for (const std::vector<double>& part : curve.parts) tokens.push_back(part[at]);
      point.acceptance_error = report::mean_of(tokens).error / point.tokens_per_round;
    }
    point.time_error = estimate_error({&cost, workload, point.draft_length + 1.0, point.time});
    point.gain = gain_over(cost, workload, point, plan.points.front());
  }
}

std::optional<int> longest_fitting(const cost::CostModel& cost, const cost::Workload& workload, int longest) {
  for (int k = longest; k >= 0; --k) {
    const auto memory = cost.memory_budget(workload, k + 1, k > 0 ? cost::Kept::both : cost::Kept::target);
    if (!memory || memory->fits()) return k;
  }
  return std::nullopt;
}

Plan make_plan(const cost::CostModel& cost, const cost::Workload& workload, const AcceptanceCurve& curve) {
  const AcceptanceCurve here = curve.at(workload.context);
  Plan plan;
  const int longest = longest_fitting(cost, workload, here.longest()).value_or(0);
  for (int k = 0; k <= longest; ++k) {
    const auto at = static_cast<std::size_t>(k);
    PlanPoint point;
    point.draft_length = k;
    point.time = cost::round_time(cost, workload, k, k > 0 ? here.full_rate[at] : 0.0);
    point.tokens_per_round = here.tokens_per_round[at];
    point.speedup = cost::speedup(point.time, point.tokens_per_round);
    point.tokens_per_second = workload.batch * point.tokens_per_round / point.time.total();
    const double tokens = workload.batch * point.tokens_per_round;
    if (const std::optional<cost::Spent> spent = cost::spent_in(cost, point.time)) {
      point.joules_per_token = spent->joules / tokens;
      point.watts = spent->watts;
      point.power_error = spent->error;
    }
    if (const std::optional<double> dollars = cost::dollars(cost, point.time.total(), k > 0))
      point.dollars_per_million = 1e6 * *dollars / tokens;
    if (point.speedup > (plan.points.empty() ? 0.0 : plan.best_point().speedup)) plan.best = k;
    plan.points.push_back(point);
  }
  std::vector<int> others = {0};
  if (plan.best > 1) others.push_back(plan.best - 1);
  if (plan.best < longest) others.push_back(plan.best + 1);
  for (const int other : others) {
    if (other == plan.best) continue;
    const PlanPoint& a = plan.best_point();
    const PlanPoint& b = plan.points[static_cast<std::size_t>(other)];
    Margin margin{other, a.speedup - b.speedup, std::numeric_limits<double>::quiet_NaN()};
    if (here.parts.size() > 1) {
      // Parts share their random numbers (or requests) over draft lengths, so differences vary less than the figures.
      const auto n = static_cast<double>(here.parts.size());
      double sum = 0.0;
      double squares = 0.0;
      for (const std::vector<double>& part : here.parts) {
        const double d = part[static_cast<std::size_t>(plan.best)] * a.speedup / a.tokens_per_round -
                         part[static_cast<std::size_t>(other)] * b.speedup / b.tokens_per_round;
        sum += d;
        squares += d * d;
      }
      const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1.0));
      margin.half_width = report::half_width(std::sqrt(variance / n), here.freedom);
    }
    plan.margins.push_back(margin);
  }
  find_ties(cost, workload, plan);
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
  return break_even_of(Ladder(cost, workload, std::max(longest, draft_length)), draft_length);
}

namespace {

Regime losing_regime(const Ladder& ladder, const std::optional<BreakEvenAlpha>& even) {
  if (even && even->alpha <= kDecentDraft) return Regime::low_acceptance;
  const int at = even ? even->draft_length : 1;
  return ladder.inflation(at) > ladder.drafting(kDecentDraft, at) ? Regime::compute_bound : Regime::expensive_draft;
}

MapCell map_cell_of(const Ladder& ladder, const std::optional<BreakEvenAlpha>& even, const cost::Workload& workload,
                    double alpha) {
  MapCell cell{workload.batch, workload.context, alpha};
  for (int k = 1; k <= ladder.longest(); ++k) {
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

Regime reason_of_loss(const cost::CostModel& cost, const cost::Workload& workload, int longest) {
  const Ladder ladder(cost, workload, longest);
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
    const int fitting = longest_fitting(cost, workload, longest).value_or(0);
    if (fitting < 1) {
      unknown(Regime::does_not_fit);
      return;
    }
    try {
      const Ladder ladder(cost, workload, fitting);
      const auto even = break_even_of(ladder, 0);
      std::transform(alphas.begin(), alphas.end(), column,
                     [&](double alpha) { return map_cell_of(ladder, even, workload, alpha); });
    } catch (const BadInput&) {
      unknown(Regime::not_covered);
    }
  });
  return cells;
}

std::vector<MapCell> make_own_map(const cost::CostModel& cost, const std::vector<double>& batches,
                                  const std::vector<double>& contexts, const AcceptanceCurve& curve, unsigned threads) {
  std::vector<MapCell> cells(batches.size() * contexts.size());
  for_each(cells.size(), threads, [&](std::size_t at) {
    MapCell& cell = cells[at];
    const cost::Workload workload{batches[at / contexts.size()], contexts[at % contexts.size()]};
    cell = {workload.batch, workload.context, curve.at(workload.context).equivalent_alpha(1)};
    const int fitting = longest_fitting(cost, workload, curve.longest()).value_or(0);
    if (fitting < 1) {
      cell.regime = Regime::does_not_fit;
      return;
    }
    try {
      const Plan plan = make_plan(cost, workload, curve);
      const Ladder ladder(cost, workload, fitting);
      const auto even = break_even_of(ladder, 0);
      cell.best = plan.best;
      cell.speedup = plan.best_point().speedup;
      cell.alpha = curve.at(workload.context).equivalent_alpha(std::max(plan.best, 1));
      cell.break_even_alpha = even ? even->alpha : 2.0;
      cell.regime = plan.best > 0 ? Regime::pays : losing_regime(ladder, even);
    } catch (const BadInput&) {
      cell.regime = Regime::not_covered;
    }
  });
  return cells;
}

double largest_batch(const cost::CostModel& cost, double context, int look_ahead, cost::Kept kept) {
  const auto fits = [&](double batch) {
    const auto memory_budget = cost.memory_budget({batch, context}, look_ahead, kept);
    return !memory_budget || memory_budget->fits();
  };
  if (fits(kUnlimitedBatch)) return kUnlimitedBatch;
  double fitting = 0.0;
  for (double above = kUnlimitedBatch; above - fitting > 1.0;) {
    const double middle = std::floor(0.5 * (fitting + above));
    (fits(middle) ? fitting : above) = middle;
  }
  return fitting;
}

double speedup_per_alpha(const cost::CostModel& cost, const cost::Workload& workload, int draft_length, double alpha) {
  constexpr double kStep = 0.005;
  const Ladder ladder(cost, workload, draft_length);
  const double low = std::max(0.0, alpha - kStep);
  const double high = std::min(1.0, alpha + kStep);
  return (ladder.speedup(high, draft_length) - ladder.speedup(low, draft_length)) / (high - low);
}

}  // namespace specsim::plan
