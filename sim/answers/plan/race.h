// How many runs a ranking needs. Methods that are compared meet the same distributions and chance in each run, so the ratios of
// two methods' speedups over the runs so far are independent samples; after some of the runs those that are behind for sure
// leave.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace specsim::plan {

struct RaceRule {
  std::vector<int> looks = {8, 12};  // runs after which methods may leave
  // With what probability the truly fastest method leaves, at most: shared out evenly over its pairings with all others at all
  // looks (Bonferroni), each of which is a test of the mean of paired ratios by Student's t.
  double error = 0.01;
  double tie = 0.005;  // methods whose speedups differ by no more than this share are as good as each other
};

struct RaceLook {
  std::vector<bool> behind;  // [method]: the fastest so far is faster for sure
  bool over = false;         // all others are behind, or tied with the fastest for sure
};

// `speedups`: [method][run] of the methods that are still in the race, in as many runs each; `entered`: how many methods began.
RaceLook look_at_race(const RaceRule& rule, const std::vector<std::vector<double>>& speedups, std::size_t entered);

}  // namespace specsim::plan
