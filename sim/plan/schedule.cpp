#include "sim/plan/schedule.h"

#include "sim/base/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace specsim::plan {

std::vector<ScanPoint> scan(const cost::CostModel& cost, const AcceptanceCurve& curve, const std::vector<double>& grid,
                            const std::function<cost::Workload(double)>& workload_at) {
  std::vector<ScanPoint> points;
  for (const double x : grid) {
    const cost::Workload workload = workload_at(x);
    const auto memory = cost.memory_budget(workload, 2, cost::Kept::both);
    if (memory && !memory->fits()) continue;
    try {
      ScanPoint point{x, make_plan(cost, workload, curve)};
      point.smooth = point.plan.best;
      points.push_back(std::move(point));
    } catch (const BadInput&) {  // beyond a table's edge
    }
  }
  return points;
}

std::vector<int> falling_lengths(const std::vector<std::vector<double>>& speedups) {
  if (speedups.empty()) return {};
  const std::size_t lengths = speedups[0].size();
  // least[i][k]: what the first i + 1 places lose where the last of them has draft length k, those before at least k.
  std::vector<std::vector<double>> least(speedups.size(), std::vector<double>(lengths, 0.0));
  std::vector<std::vector<std::size_t>> before(speedups.size(), std::vector<std::size_t>(lengths, 0));
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    SPECSIM_CHECK(speedups[i].size() == lengths, "{} draft lengths, then {}", lengths, speedups[i].size());
    const double best = *std::max_element(speedups[i].begin(), speedups[i].end());
    double cheapest = std::numeric_limits<double>::infinity();
    std::size_t from = lengths - 1;
    for (std::size_t k = lengths; k-- > 0;) {
      if (i > 0 && least[i - 1][k] < cheapest) {
        cheapest = least[i - 1][k];
        from = k;
      }
      before[i][k] = from;
      least[i][k] = (i > 0 ? cheapest : 0.0) + std::log(best / speedups[i][k]);
    }
  }
  std::vector<int> chosen(speedups.size());
  auto at = static_cast<std::size_t>(std::min_element(least.back().begin(), least.back().end()) - least.back().begin());
  for (std::size_t i = speedups.size(); i-- > 0;) {
    chosen[i] = static_cast<int>(at);
    at = before[i][at];
  }
  return chosen;
}

void smooth(std::vector<ScanPoint>& points) {
  std::vector<std::vector<double>> speedups;
  for (const ScanPoint& point : points) {
    std::vector<double>& own = speedups.emplace_back();
    for (const PlanPoint& p : point.plan.points) own.push_back(p.speedup);
  }
  const std::vector<int> lengths = falling_lengths(speedups);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].smooth = lengths[i];
    points[i].loss = 1.0 - speedups[i][static_cast<std::size_t>(lengths[i])] / points[i].plan.best_point().speedup;
  }
}

std::vector<Stretch> stretches(const std::vector<ScanPoint>& points) {
  std::vector<Stretch> list;
  for (const ScanPoint& point : points) {
    if (list.empty() || list.back().draft_length != point.smooth) list.push_back({point.at, point.at, point.smooth});
    list.back().to = point.at;
  }
  return list;
}

bool rises(const std::vector<ScanPoint>& points) {
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].plan.best > points[i - 1].plan.best) return true;
  return false;
}

std::vector<double> doubling(double from, double to) {
  std::vector<double> grid;
  for (double x = from; x <= to; x *= 2.0) grid.push_back(x);
  return grid;
}

std::vector<double> fine_batches(double from, double to) {
  std::set<double> grid;
  for (const double power : doubling(from, to))
    for (const double x : {power, power + 1.0, std::floor(1.25 * power), std::floor(1.5 * power), std::floor(1.5 * power) + 1.0,
                           std::floor(1.75 * power)})
      if (x <= to) grid.insert(x);
  return {grid.begin(), grid.end()};
}

}  // namespace specsim::plan
