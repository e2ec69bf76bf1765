// Percentiles of what several runs say together, or several stretches of one run, with intervals that hold for samples that
// depend on each other, as the waits of requests in one queue do.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace specsim::serve {

// What is kept of a run's samples for percentiles over several runs: quantiles of the upper fifth, closer to each other towards
// the largest. NaN where there were no samples.
constexpr std::size_t kTail = 64;
using Tail = std::array<double, kTail>;
// The share of samples that quantile number `i` of a tail does not fall below: from 0.8 to 1.
double tail_share(std::size_t i);
// `sorted`: rising.
Tail tail_of(std::span<const double> sorted);

struct PercentileEstimate {
  double value = 0.0;
  double low = 0.0;  // 95 % interval; NaN where nothing is known of it
  double high = 0.0;
  // Half the width of the interval with the value at its centre that holds both ends of this one, which reaches further up than
  // down.
  [[nodiscard]] double half_width() const;
};

// The percentile of the pool of several runs, for a share from 0.8 up. The interval inverts the test of the share itself
// (Woodruff 1952): values above which the runs' shares of samples agree with what the percentile says, in logarithms, by
// Student's t. A mean of the runs' own percentiles would keep the bias that each of them has, and an interval around it would not
// see it.
struct RunTail {
  double count = 0.0;
  const Tail* tail = nullptr;
};
PercentileEstimate pooled_percentile(std::span<const RunTail> runs, double share);

// Half the 95 % interval around the mean of a few means of times, as waits in a queue, in which most are short and few are long:
// Student's t with Johnson's term for samples that are skewed to the right (Johnson 1978, J. Am. Stat. Assoc. 73, 536). Samples
// whose mean may be 0 are no times, and get Student's t alone.
double half_width_of_times(std::span<const double> samples);

// Intervals from one run, its samples in their order. Of the mean from the means of five batches, long enough to depend on each
// other little, by half_width_of_times(); NaN below 100 samples. Of the 99th percentile by eight stretches of the run as if
// they were runs; NaN below 800 samples.
struct BatchIntervals {
  double mean_half_width = 0.0;
  double p99_half_width = 0.0;
};
BatchIntervals batch_intervals(std::span<const double> in_order);

}  // namespace specsim::serve
