// How many runs a ranking needs. Compared methods meet the same distributions and random numbers in each run, so the ratios of
// two methods' speedups are independent samples over the runs. After some of the runs, methods that are significantly slower are
// dropped.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::plan {

struct RaceRule {
  std::vector<int> looks = {8, 12};  // numbers of runs after which methods may be dropped
  // The largest probability that the truly fastest method is dropped. It is split evenly over that method's pairings with all
  // others at all looks (Bonferroni). Each pairing is a t-test of the mean of paired ratios.
  double error = 0.01;
  double tie = 0.005;  // methods whose speedups differ by less than this share count as equal
};

struct RaceLook {
  std::vector<bool> behind;  // [method]: significantly slower than the fastest so far
  bool over = false;         // all others are significantly slower, or tied with the fastest
};

// `speedups`: [method][run] of the methods still in the race, with equally many runs each. `entered`: the number of methods at
// the start.
RaceLook race_state(const RaceRule& rule, const std::vector<std::vector<double>>& speedups, std::size_t entered);

}  // namespace specsim::plan
