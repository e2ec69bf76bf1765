// Limits by name, and the largest load that keeps them.
#pragma once

#include "sim/answers/load/curve.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace specsim::load {

struct SloPreset {
  std::string name;  // mlperf:llama2-70b-server
  serve::Slo slo;
};
const std::vector<SloPreset>& slo_presets();
// nullptr where there is none of this name.
const SloPreset* find_slo_preset(const std::string& name);

// The place between two loads that were run where the SLO ends.
struct LoadLimit {
  double keeps = NAN;  // the largest load that was found to keep it; NaN: none of those tried
  double fails = NAN;  // the smallest load above `keeps` that misses the SLO; NaN: all of those tried keep it
  // Half the width of a 95 % interval, by how far apart the limits of single replications lie; NaN: there was one replication, or
  // they were too short to tell.
  double half_width = NAN;
  double capacity = NAN;      // what a rate's server completes, above which no load keeps it; NaN: not known
  std::size_t too_short = 0;  // requests that the run at `keeps` should have had; 0: it had them
};

// Whether a load keeps the SLO: enough requests of all replications together keep its limits, and the load is not above the
// capacity. Above it queues grow without end, and a run that keeps the limits is merely too short to show it.
bool keeps_slo(const CurvePoint& point, const serve::Slo& slo);

// Bisection between the last load of a curve below which the SLO is kept and the next one, until they are a sixty-fourth of their
// first distance apart (whole numbers, where concurrencies are). `tried`: the curve's points of this server.
LoadLimit largest_load(const ServeExperiment& experiment, Load load, std::vector<CurvePoint> tried, SweepRunner& runner,
                       const std::string& option);

// The largest load of each draft length: the server of `experiment` with policy `fixed`, its pool and prices as they are.
struct LengthLimit {
  int draft_length = 0;
  LoadLimit limit;
};
std::vector<LengthLimit> limits_by_length(const ServeExperiment& experiment, Load load, const std::vector<double>& values,
                                          const std::vector<int>& lengths, SweepRunner& runner, const std::string& option);

// The limit in words: "14.25 ± 0.3 (14.5 does not)", "none of those tried", "40, the largest tried".
std::string limit_text(const LoadLimit& limit);
// Which of these draft lengths keeps the SLO up to the largest load, beside the config's own policy (draft length -1); "" where
// none does at any load. Where several keep it at the largest load tried, nothing says which is best.
std::string best_length_text(const std::vector<LengthLimit>& limits, Load load);
// A line for each: draft_length (-1: the config's own policy), keeps, fails.
std::string limits_csv(const std::vector<LengthLimit>& limits, Load load);
// slo.csv and its columns, for the reference page.
report::FileInfo limits_info();

}  // namespace specsim::load
