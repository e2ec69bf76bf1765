#include "sim/answers/load/curve.h"

#include "sim/answers/load/capacity.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/report/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace specsim::load {

const char* load_name(Load load) { return load == Load::rate ? "rate" : "concurrency"; }

ServeExperiment at_load(const ServeExperiment& experiment, Load load, double value, const std::string& option) {
  ServeExperiment one = experiment;
  one.arrivals = load == Load::rate ? experiment.arrivals->with_rate(value)
                                    : experiment.arrivals->with_concurrency(static_cast<std::uint32_t>(value));
  if (!one.arrivals)
    throw BadInput({option, 0, 0}, fmt::format("the arrivals have no {}, allowed: a process that has one", load_name(load)));
  return one;
}

std::vector<CurvePoint> load_curve(const ServeExperiment& experiment, Load load, const std::vector<double>& values, bool both,
                                   SweepRunner& runner, const std::string& option) {
  std::vector<ServeExperiment> points;
  std::vector<CurvePoint> curve;
  for (const double value : values) {
    if (runner.stopped()) return {};
    const ServeExperiment one = at_load(experiment, load, value, option);
    for (const bool speculative : {false, true}) {
      if (speculative ? !experiment.speculation : experiment.speculation && !both) continue;
      curve.push_back({value, speculative, {}, {NAN, NAN, 0.0}, 0});
      points.push_back(speculative ? one : without_speculation(one));
    }
  }
  if (load == Load::rate)
    for (const bool speculative : {false, true}) {
      const auto of = [&](const CurvePoint& point) { return point.speculative == speculative; };
      const auto first = std::find_if(curve.begin(), curve.end(), of);
      if (first == curve.end()) continue;
      const report::Estimate capacity = capacity_of(points[static_cast<std::size_t>(first - curve.begin())], runner);
      for (CurvePoint& point : curve)
        if (of(point)) point.capacity = capacity;
    }
  run_points(curve, std::move(points), runner);
  return curve;
}

void run_points(std::vector<CurvePoint>& points, std::vector<ServeExperiment> servers, SweepRunner& runner) {
  constexpr int kMostTurns = 4;  // near the capacity a longer run shows longer stays, which need a longer run
  std::vector<std::size_t> pending(points.size());
  for (std::size_t i = 0; i < pending.size(); ++i) pending[i] = i;
  for (int turn = 0; turn < kMostTurns && !pending.empty() && !runner.stopped(); ++turn) {
    std::vector<ServeExperiment> chosen;
    for (const std::size_t i : pending) chosen.push_back(servers[i]);
    std::vector<std::vector<serve::Summary>> summaries = runner.run(chosen);
    if (runner.stopped()) return;
    for (std::size_t k = 0; k < pending.size(); ++k) points[pending[k]].replications = std::move(summaries[k]);
    std::map<double, std::size_t> needed;  // [load]
    std::map<double, std::size_t> wanted;  // the same, and what an overloaded server needs for the throughput of its full batches
    for (const CurvePoint& point : points)
      for (const serve::Summary& run : point.replications) {
        if (!run.stable) continue;
        const bool over = point.beyond() || (std::isnan(point.capacity.value) && overloaded(point));
        std::size_t& most = (over ? wanted : needed)[point.load];
        most = std::max(most, over ? requests_in_full_batches(run) : requests_needed(run, point.load, point.capacity.value));
      }
    pending.clear();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double load = points[i].load;
      const std::size_t has = points[i].replications.front().requests;
      points[i].too_short = needed[load] > has ? needed[load] : 0;
      const std::size_t most = std::min(std::max(needed[load], wanted[load]), kMostRequests);
      if (servers[i].counts_requests || has >= most) continue;
      servers[i] = with_requests(std::move(servers[i]), most);
      pending.push_back(i);
    }
  }
}

CurveFigure figure(const CurvePoint& point, double (*of)(const serve::Summary&)) {
  std::vector<double> samples;
  for (const serve::Summary& summary : point.replications)
    if (const double value = of(summary); !std::isnan(value)) samples.push_back(value);
  if (samples.empty()) return {NAN, NAN};
  const report::Estimate mean = report::mean_of(samples);
  return {mean.value, report::half_width(mean)};
}

bool waits_measurable(const CurvePoint& point) {
  double requests = 0.0;
  for (const serve::Summary& run : point.replications) requests += static_cast<double>(run.requests);
  return waits_measurable(requests, point.load, point.capacity.value);
}

CurveFigure mean_latency(const CurvePoint& point, serve::Latency which) {
  std::vector<double> samples;
  for (const serve::Summary& run : point.replications)
    if (const double value = latency(run, which).mean; !std::isnan(value)) samples.push_back(value);
  if (samples.empty()) return {NAN, NAN};
  const double mean = report::mean_of(samples).value;
  if (which != serve::Latency::tpot && !waits_measurable(point)) return {mean, NAN};
  return {mean, samples.size() > 1 ? serve::half_width_of_times(samples)
                                   : point.replications.front().spreads[static_cast<std::size_t>(which)].mean_half_width};
}

CurveFigure p99_latency(const CurvePoint& point, serve::Latency which) {
  const auto i = static_cast<std::size_t>(which);
  if (point.replications.size() == 1)
    return {latency(point.replications.front(), which).p99, which == serve::Latency::tpot || waits_measurable(point)
                                                                ? point.replications.front().spreads[i].p99_half_width
                                                                : NAN};
  std::vector<serve::RunTail> runs;
  for (const serve::Summary& run : point.replications) runs.push_back({latency(run, which).count, &run.spreads[i].tail});
  const serve::PercentileEstimate p99 = serve::pooled_percentile(runs, 0.99);
  return {p99.value, which == serve::Latency::tpot || waits_measurable(point) ? p99.half_width() : NAN};
}

bool overloaded(const CurvePoint& point) {
  return point.beyond() ||
         figure(point, [](const serve::Summary& s) { return s.overloaded || !s.stable ? 1.0 : 0.0; }).mean > 0.5;
}

}  // namespace specsim::load
