// A server at several loads, with its speculation and without, over the same arrivals and the same texts.
#pragma once

#include "sim/serve/sweep_runner.h"

#include <string>
#include <vector>

namespace specsim::serve {

// What a sweep goes over.
enum class Load { rate, concurrency };
const char* load_name(Load load);

struct CurvePoint {
  double load = 0.0;
  bool speculative = false;
  std::vector<Summary> replications;  // with seeds of their own, the same for every point and for both ways
};

// The same server at another load. Throws BadInput, at `option`, where the arrivals have no such load.
ServeExperiment at_load(const ServeExperiment& experiment, Load load, double value, const std::string& option);

// The curve's points in the order of the loads, at each the plain server first where there are both. `both`: where the
// experiment speculates, the plain server as well. Throws BadInput as at_load() does.
std::vector<CurvePoint> load_curve(const ServeExperiment& experiment, Load load, const std::vector<double>& values, bool both,
                                   SweepRunner& runner, const std::string& option);

// A line for each point: means over the replications, and half a 95 % interval of the main figures.
std::string curve_csv(const std::vector<CurvePoint>& curve, Load load);

// One figure of a summary: its mean over the replications, and half its 95 % interval (NaN for one replication).
struct CurveFigure {
  double mean = 0.0;
  double half_width = 0.0;
};
CurveFigure figure(const CurvePoint& point, double (*of)(const Summary&));
// In more than half of the replications: one of several short runs at a high load looks so by chance.
bool overloaded(const CurvePoint& point);

// Up to which load speculation pays, in words: by mean TPOT, by output throughput, and where the server is overloaded.
std::vector<std::string> verdict(const std::vector<CurvePoint>& curve, Load load);

}  // namespace specsim::serve
