// Percentiles of several runs together, or of several stretches of one run, with intervals that are valid for samples that depend
// on each other, as the waits of requests in one queue do.
#pragma once

#include "sim/foundation/math/quantile_sketch.h"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace specsim::serve {

// The part of a run's samples that is kept for percentiles over several runs: quantiles of the upper fifth, closer to each other
// towards the largest. NaN if there were no samples.
constexpr std::size_t kTail = 64;
using Tail = std::array<double, kTail>;
// The share of samples that are at or below quantile number `i` of a tail: from 0.8 to 1.
double tail_share(std::size_t i);
// `sorted`: in increasing order.
Tail tail_of(std::span<const double> sorted);
Tail tail_of(const math::QuantileSketch& sketch);

struct PercentileEstimate {
  double value = 0.0;
  double low = 0.0;  // 95 % interval; NaN if it is not known
  double high = 0.0;
  // Half the width of a symmetric interval around the value that contains both ends of this one, which reaches further up than
  // down.
  [[nodiscard]] double half_width() const;
};

// The percentile of the pool of several runs, for a share from 0.8 up. The interval inverts the test of the share itself
// (Woodruff 1952): it contains the values above which the runs' shares of samples are compatible with the percentile's share, in
// logarithms, by Student's t. A mean of the runs' own percentiles would keep the bias of each of them, and an interval around it
// would not contain this bias.
struct RunTail {
  double count = 0.0;
  const Tail* tail = nullptr;
};
PercentileEstimate pooled_percentile(std::span<const RunTail> runs, double share);

// Half the 95 % interval around the mean of a few means of times, as waits in a queue, in which most are short and few are long:
// Student's t with Johnson's term for samples that are skewed to the right (Johnson 1978, J. Am. Stat. Assoc. 73, 536). Samples
// whose mean may be 0 are not times, and get Student's t alone.
double half_width_of_times(std::span<const double> samples);

// Intervals from one run, with its samples in their order. For the mean: from the means of five batches, long enough to be nearly
// independent, by half_width_of_times(); NaN below 100 samples. For the 99th percentile: from eight stretches of the run, treated
// as runs; NaN below 800 samples.
struct BatchIntervals {
  double mean_half_width = 0.0;
  double p99_half_width = 0.0;
};
BatchIntervals batch_intervals(std::span<const double> in_order);

}  // namespace specsim::serve
