#include "sim/answers/plan/race.h"

#include "sim/foundation/report/intervals.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace specsim::plan {

RaceLook race_state(const RaceRule& rule, const std::vector<std::vector<double>>& speedups, std::size_t entered) {
  RaceLook look{std::vector<bool>(speedups.size()), true};
  if (speedups.size() < 2) return look;
  std::size_t first = 0;
  double best = 0.0;
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    const double sum = std::accumulate(speedups[i].begin(), speedups[i].end(), 0.0);
    if (sum > best) {
      best = sum;
      first = i;
    }
  }
  const double tests = static_cast<double>(rule.looks.size()) * static_cast<double>(std::max<std::size_t>(entered, 2) - 1);
  std::vector<double> ratios(speedups[first].size());
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    if (i == first) continue;
    for (std::size_t run = 0; run < ratios.size(); ++run) ratios[run] = speedups[i][run] / speedups[first][run];
    const report::Estimate ratio = report::mean_of(ratios);
    const double lag = 1.0 - ratio.value;
    const double half = report::half_width(ratio, 1.0 - rule.error / tests);
    const bool tied = std::abs(lag) + half <= rule.tie;
    look.behind[i] = !tied && lag > half;
    if (!look.behind[i] && !tied) look.over = false;
  }
  return look;
}

}  // namespace specsim::plan
