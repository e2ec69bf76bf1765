// A server at several loads, with and without speculation, with the same arrivals and the same texts.
#pragma once

#include "sim/answers/load/sweep_runner.h"
#include "sim/foundation/report/column.h"
#include "sim/foundation/report/intervals.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace specsim::load {

// The quantity that a sweep varies.
enum class Load { rate, concurrency };
const char* load_name(Load load);

struct CurvePoint {
  double load = 0.0;
  bool speculative = false;
  std::vector<serve::Summary> replications;     // runs with different seeds, the same for every point and both servers
  report::Estimate capacity = {NAN, NAN, 0.0};  // rate that the server completes, capacity_of(); NaN: unknown
  std::size_t too_short = 0;                    // requests of a long enough run at this load; 0: these runs were long enough
  [[nodiscard]] bool beyond() const { return load > capacity.value; }
};

// The experiment's server at another load. Throws BadInput at `option` if the arrivals have no such load.
ServeExperiment at_load(const ServeExperiment& experiment, Load load, double value, const std::string& option);

// The curve's points in the order of the loads. At each load the server without speculation comes first, if there are both.
// `both`: if the experiment speculates, add the server without speculation. Throws BadInput as at_load() does.
std::vector<CurvePoint> load_curve(const ServeExperiment& experiment, Load load, const std::vector<double>& values, bool both,
                                   SweepRunner& runner, const std::string& option);

// Runs the servers, each at its point's load, and fills in the points' replications. A run that is too short gives the figures
// of a server that is still filling up. If the number of requests is not given, it is run again with requests_needed() of them.
// All points of one load get equally many requests, so that they differ in nothing else.
void run_points(std::vector<CurvePoint>& points, std::vector<ServeExperiment> servers, SweepRunner& runner);

// Servers to compare: name and figures.
using Summaries = std::vector<std::pair<std::string, serve::Summary>>;
// One line per server.
std::string summary_csv(const Summaries& summaries);
// The figures of classes of requests, with the name of the server. One line per class and server.
using ClassTable = std::vector<std::pair<std::string, ClassSummary>>;
std::string classes_csv(const ClassTable& classes);
// One line per point: means over the replications, and half a 95 % interval of the main figures.
std::string curve_csv(const std::vector<CurvePoint>& curve, Load load);
// summary.csv, classes.csv and curve.csv and their columns, for the reference page.
std::vector<report::FileInfo> curve_infos();

// A figure of a summary: its mean over the replications, and half its 95 % interval (NaN for one replication).
struct CurveFigure {
  double mean = 0.0;
  double half_width = 0.0;
};
CurveFigure figure(const CurvePoint& point, double (*of)(const serve::Summary&));
// waits_measurable() of capacity.h for the point's replications. If it is false, latencies that include waits have no interval.
bool waits_measurable(const CurvePoint& point);
// The mean over the replications; the interval of a single replication comes from batches of its requests.
CurveFigure mean_latency(const CurvePoint& point, serve::Latency which);
// The 99th percentile over the requests of all replications together.
CurveFigure p99_latency(const CurvePoint& point, serve::Latency which);
// Whether the load is above the capacity, or more than half of the replications were overloaded. A single short run at a high
// load can look overloaded by chance.
bool overloaded(const CurvePoint& point);

}  // namespace specsim::load
