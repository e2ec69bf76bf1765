// Limits by name, and the largest load that keeps them.
#pragma once

#include "sim/answers/load/curve.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace specsim::load {

struct SloPreset {
  std::string name;  // mlperf:llama2-70b-server
  serve::Slo slo;
};
const std::vector<SloPreset>& slo_presets();
// nullptr if there is none of this name.
const SloPreset* find_slo_preset(const std::string& name);

// The load at which the SLO ends, between two loads that were run.
struct LoadLimit {
  double keeps = NAN;  // the largest load found that keeps it; NaN: none of those tried
  double fails = NAN;  // the smallest load above `keeps` that misses the SLO; NaN: all loads tried keep it
  // Half the width of a 95 % interval, from the limits of single replications; NaN: there was one replication, or they were too
  // short.
  double half_width = NAN;
  // 95 % interval by the error of the estimated latencies, by limit_range(); NaN: unknown
  double low = NAN;
  double high = NAN;
  double capacity = NAN;      // rate that the server completes; no load above it keeps the SLO; NaN: unknown
  std::size_t too_short = 0;  // requests that the run at `keeps` needs; 0: it had enough
};

// Whether a load keeps the SLO: enough requests of all replications together keep its limits, and the load is not above the
// capacity. Above the capacity, queues grow without limit, and a run that keeps the limits is only too short to show it.
bool keeps_slo(const CurvePoint& point, const serve::Slo& slo);

// Bisection between the last load of a curve up to which the SLO is kept and the next one. It ends when they are a sixty-fourth
// of their first distance apart (whole numbers for concurrencies). `tried`: the curve's points of this server.
LoadLimit largest_load(const ServeExperiment& experiment, Load load, std::vector<CurvePoint> tried, SweepRunner& runner,
                       const std::string& option);

// The largest load that keeps the SLO if all of the server's times are longer by `factor`. That is the server of the experiment
// in slower time: it has more load per time unit and less time within each limit. `limit`: of the factor 1.
double largest_load_if_slower(const ServeExperiment& experiment, Load load, const LoadLimit& limit, double factor,
                              const std::string& option, const std::atomic<bool>* stop = nullptr);
// Fills in low and high of a limit that was found between two loads, if the latency model states its error.
void add_range(const ServeExperiment& experiment, Load load, LoadLimit& limit, const std::string& option,
               const std::atomic<bool>* stop = nullptr);

// The largest load of each draft length: the server of `experiment` with policy `fixed`, with the same pool and latencies.
struct LengthLimit {
  std::optional<int> draft_length;  // none: the config's own policy
  LoadLimit limit;
};
std::vector<LengthLimit> limits_by_length(const ServeExperiment& experiment, Load load, const std::vector<double>& values,
                                          const std::vector<int>& lengths, SweepRunner& runner, const std::string& option);

// The limit in words: "14.25 ± 0.3 (14.5 does not)", "none of those tried", "40, the largest tried".
std::string limit_text(const LoadLimit& limit);
// The draft lengths that keep the SLO up to the largest load, compared with the config's own policy; "" if
// none keeps it at any load. If several keep it at the largest load tried, the best is unknown.
std::string best_length_text(const std::vector<LengthLimit>& limits, Load load);
// A line per draft length: draft_length (-1: the config's own policy), keeps, fails.
std::string limits_csv(const std::vector<LengthLimit>& limits, Load load);
// slo.csv and its columns, for the reference page.
report::FileInfo limits_info();

}  // namespace specsim::load
