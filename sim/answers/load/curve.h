// A server at several loads, with its speculation and without, over the same arrivals and the same texts.
#pragma once

#include "sim/answers/load/sweep_runner.h"
#include "sim/foundation/report/column.h"
#include "sim/foundation/report/intervals.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace specsim::load {

// What a sweep goes over.
enum class Load { rate, concurrency };
const char* load_name(Load load);

struct CurvePoint {
  double load = 0.0;
  bool speculative = false;
  std::vector<serve::Summary> replications;     // runs with seeds of their own, the same for every point and for both ways
  report::Estimate capacity = {NAN, NAN, 0.0};  // what a rate's server completes, capacity_of(); NaN: not known
  std::size_t too_short = 0;  // requests that a run long enough for this load has; 0: these runs were long enough
  [[nodiscard]] bool beyond() const { return load > capacity.value; }
};

// The experiment's server at another load. Throws BadInput, at `option`, where the arrivals have no such load.
ServeExperiment at_load(const ServeExperiment& experiment, Load load, double value, const std::string& option);

// The curve's points in the order of the loads, at each the plain server first where there are both. `both`: where the
// experiment speculates, the plain server as well. Throws BadInput as at_load() does.
std::vector<CurvePoint> load_curve(const ServeExperiment& experiment, Load load, const std::vector<double>& values, bool both,
                                   SweepRunner& runner, const std::string& option);

// Runs the servers, each at its point's load, and fills the points' replications. A run that is too short gives the figures of a
// server that still fills up: where the number of requests is not said, it is run again with requests_needed() of them. All
// points of one load get equally many, so that they differ in nothing else.
void run_points(std::vector<CurvePoint>& points, std::vector<ServeExperiment> servers, SweepRunner& runner);

// Servers beside each other: name and figures.
using Summaries = std::vector<std::pair<std::string, serve::Summary>>;
// A line for each server.
std::string summary_csv(const Summaries& summaries);
// A line for each point: means over the replications, and half a 95 % interval of the main figures.
std::string curve_csv(const std::vector<CurvePoint>& curve, Load load);
// summary.csv and curve.csv and their columns, for the reference page.
std::vector<report::FileInfo> curve_infos();

// One figure of a summary: its mean over the replications, and half its 95 % interval (NaN for one replication).
struct CurveFigure {
  double mean = 0.0;
  double half_width = 0.0;
};
CurveFigure figure(const CurvePoint& point, double (*of)(const serve::Summary&));
// tells_waits() of capacity.h, of the point's replications. Where they do not, latencies with waits in them have no interval.
bool tells_waits(const CurvePoint& point);
// The mean over the replications; the interval of a single replication comes from batches of its requests.
CurveFigure mean_latency(const CurvePoint& point, serve::Latency which);
// The 99th percentile over the requests of all replications together.
CurveFigure p99_latency(const CurvePoint& point, serve::Latency which);
// Whether the load is above the capacity, or more than half of the replications were overloaded: one of several short runs at a
// high load looks so by chance.
bool overloaded(const CurvePoint& point);

}  // namespace specsim::load
