#include "sim/answers/plan/schedule.h"

#include "sim/foundation/base/error.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

namespace specsim::plan {

std::vector<ScanPoint> scan(const cost::CostModel& cost, const AcceptanceCurve& curve, const std::vector<double>& grid,
                            const std::function<cost::Workload(double)>& workload_at) {
  std::vector<ScanPoint> points;
  for (const double x : grid) {
    const cost::Workload workload = workload_at(x);
    if (longest_fitting(cost, workload, 1) != 1) continue;
    try {
      ScanPoint point{x, make_plan(cost, workload, curve)};
      point.smooth = point.plan.best;
      points.push_back(std::move(point));
    } catch (const BadInput&) {  // outside the latency table
    }
  }
  return points;
}

LengthGrid scan_lengths(const cost::CostModel& cost, const AcceptanceCurve& curve, std::vector<double> batches,
                        std::vector<double> contexts) {
  LengthGrid grid{std::move(batches), std::move(contexts), {}};
  for (const double batch : grid.batches) {
    std::vector<std::optional<int>> row(grid.contexts.size());
    for (const ScanPoint& point : scan(cost, curve, grid.contexts, [&](double x) { return cost::Workload{batch, x}; })) {
      const auto at = std::find(grid.contexts.begin(), grid.contexts.end(), point.at);
      row[static_cast<std::size_t>(at - grid.contexts.begin())] = point.plan.best;
    }
    grid.best.push_back(std::move(row));
  }
  return grid;
}

namespace {

// [place][draft length]: share of the place's best speedup that the length gives up; 1 if it does not fit.
std::vector<std::vector<double>> lost_shares(const std::vector<ScanPoint>& points) {
  std::size_t lengths = 0;
  for (const ScanPoint& point : points) lengths = std::max(lengths, point.plan.points.size());
  std::vector<std::vector<double>> lost;
  for (const ScanPoint& point : points) {
    std::vector<double>& own = lost.emplace_back();
    for (const PlanPoint& p : point.plan.points) own.push_back(1.0 - p.speedup / point.plan.best_point().speedup);
    own.resize(lengths, 1.0);
  }
  return lost;
}

}  // namespace

bool is_shown(double place) { return std::exp2(std::round(std::log2(place))) == place; }

void smooth(std::vector<ScanPoint>& points) {
  const std::vector<std::vector<double>> lost = lost_shares(points);
  const std::vector<int> lengths = choose_lengths(lost, Rise::once);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].smooth = lengths[i];
    points[i].loss = lost[i][static_cast<std::size_t>(lengths[i])];
  }
}

std::optional<SmoothRise> smooth_rise(const std::vector<ScanPoint>& points) {
  const auto longer = std::adjacent_find(points.begin(), points.end(),
                                         [](const ScanPoint& a, const ScanPoint& b) { return a.smooth < b.smooth; });
  if (longer == points.end()) return std::nullopt;
  SmoothRise rise{std::next(longer)->at, 0.0, 0.0};
  const std::vector<std::vector<double>> lost = lost_shares(points);
  const std::vector<int> falling = choose_lengths(lost, Rise::never);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (const double loss = lost[i][static_cast<std::size_t>(falling[i])]; loss > rise.loss) {
      rise.loss = loss;
      rise.worst = points[i].at;
    }
  return rise;
}

std::vector<LengthRange> ranges_of(const std::vector<ScanPoint>& points) {
  std::vector<LengthRange> ranges;
  for (const ScanPoint& point : points) add_to_ranges(ranges, static_cast<int>(point.at), point.smooth);
  return ranges;
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
