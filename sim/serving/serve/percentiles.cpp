#include "sim/serving/serve/percentiles.h"

#include "sim/foundation/base/bisect.h"
#include "sim/foundation/math/quantiles.h"
#include "sim/foundation/report/intervals.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace specsim::serve {

namespace {

constexpr double kTailLowest = 0.8;  // the share at which a tail begins

// The share of a run's samples that do not exceed `x`; below the tail, the share at which the tail begins.
double share_below(const Tail& tail, double x) {
  const auto above = std::upper_bound(tail.begin(), tail.end(), x);
  if (above == tail.begin()) return kTailLowest;
  if (above == tail.end()) return 1.0;
  const auto high = static_cast<std::size_t>(above - tail.begin());
  const double part = (x - tail[high - 1]) / (tail[high] - tail[high - 1]);
  return tail_share(high - 1) + part * (tail_share(high) - tail_share(high - 1));
}

// Whether `truth`, the share above some value, is compatible with these shares of independent sections, by Student's t on
// logarithms. The error of the logarithm of a share is symmetric, even if only a few sections contain the whole share.
bool compatible(std::span<const double> above, double truth) {
  const report::Estimate mean = report::mean_of(above);
  if (!(mean.value > 0.0)) return false;
  return std::abs(std::log(mean.value / truth)) * mean.value <= report::half_width(mean);
}

double mean_of_all(std::span<const double> samples) {
  double sum = 0.0;
  for (const double one : samples) sum += one;
  return sum / static_cast<double>(samples.size());
}

}  // namespace

double tail_share(std::size_t i) {
  const double left = 1.0 - static_cast<double>(i) / static_cast<double>(kTail - 1);
  return 1.0 - (1.0 - kTailLowest) * left * left;
}

Tail tail_of(std::span<const double> sorted) {
  Tail tail{};
  for (std::size_t i = 0; i < kTail; ++i) tail[i] = math::sample_quantile(sorted, tail_share(i));
  return tail;
}

Tail tail_of(const math::QuantileSketch& sketch) {
  Tail tail{};
  for (std::size_t i = 0; i < kTail; ++i) tail[i] = sketch.quantile(tail_share(i));
  return tail;
}

double PercentileEstimate::half_width() const { return std::isnan(low) ? NAN : std::max(high - value, value - low); }

PercentileEstimate pooled_percentile(std::span<const RunTail> runs, double share) {
  std::vector<RunTail> known;
  double count = 0.0;
  double least = INFINITY;
  double most = -INFINITY;
  for (const RunTail& run : runs) {
    if (!(run.count > 0.0) || std::isnan(run.tail->back())) continue;
    known.push_back(run);
    count += run.count;
    least = std::min(least, run.tail->front());
    most = std::max(most, run.tail->back());
  }
  if (known.empty()) return {NAN, NAN, NAN};
  const auto quantile = [&](double wanted) {
    const auto is_below = [&](double x) {
      double below = 0.0;
      for (const RunTail& run : known) below += run.count / count * share_below(*run.tail, x);
      return below < wanted;
    };
    return bisect(least, most, is_below).high;
  };
  PercentileEstimate estimate{quantile(share), NAN, NAN};
  std::vector<double> above(known.size());
  const auto shares_above = [&](double x) {
    for (std::size_t i = 0; i < known.size(); ++i) above[i] = 1.0 - share_below(*known[i].tail, x);
  };
  shares_above(estimate.value);
  const report::Estimate mean = report::mean_of(above);
  const double half = report::half_width(mean);
  if (std::isnan(half) || !(mean.value > 0.0)) return estimate;
  // From the error at the estimate. Above it, if only the worst runs have any values, extrapolates the line that the logarithm of
  // the share above follows below the estimate.
  const double factor = std::exp(half / mean.value);
  const double from = std::max(kTailLowest, 1.0 - 10.0 * (1.0 - share));
  const double slope = (estimate.value - quantile(from)) / std::log((1.0 - from) / (1.0 - share));
  estimate.low = quantile(1.0 - (1.0 - share) * factor);
  estimate.high = estimate.value + slope * std::log(factor);
  // Also from the error at each value itself, which grows if few runs have any. The shares are linear between values of the
  // tails.
  std::vector<double> values;
  for (const RunTail& run : known) values.insert(values.end(), run.tail->begin(), run.tail->end());
  for (const double x : values) {
    shares_above(x);
    if (!compatible(above, 1.0 - share)) continue;
    estimate.low = std::min(estimate.low, x);
    estimate.high = std::max(estimate.high, x);
  }
  return estimate;
}

namespace {

double p99_half_width(std::span<const double> in_order) {
  constexpr std::size_t kSections = 8;
  constexpr std::size_t kLeastSamples = 800;
  if (in_order.size() < kLeastSamples) return NAN;
  std::array<Tail, kSections> tails{};
  std::vector<RunTail> runs;
  const std::size_t each = in_order.size() / kSections;
  const std::size_t skipped = in_order.size() - each * kSections;
  for (std::size_t i = 0; i < kSections; ++i) {
    const auto section = in_order.subspan(skipped + i * each, each);
    std::vector<double> sorted(section.begin(), section.end());
    std::sort(sorted.begin(), sorted.end());
    tails[i] = tail_of(sorted);
    runs.push_back({static_cast<double>(each), &tails[i]});
  }
  return pooled_percentile(runs, 0.99).half_width();
}

}  // namespace

double half_width_of_times(std::span<const double> samples) {
  const report::Estimate mean = report::mean_of(samples);
  const double half = report::half_width(mean);
  const auto n = static_cast<double>(samples.size());
  if (!(half < mean.value) || n < 3.0 || mean.error == 0.0) return half;
  double cubes = 0.0;
  for (const double x : samples) cubes += std::pow((x - mean.value) / mean.error, 3);
  // The third moment in units of the standard deviation, mean.error sqrt(n), without bias.
  const double skewness = std::max(0.0, cubes / std::sqrt(n) / ((n - 1.0) * (n - 2.0)));
  const double t = half / mean.error;
  return half + mean.error * skewness * (1.0 + 2.0 * t * t) / (6.0 * std::sqrt(n));
}

BatchIntervals batch_intervals(std::span<const double> in_order) {
  constexpr std::size_t kLeastSamples = 100;
  constexpr std::size_t kBatches = 5;
  if (in_order.size() < kLeastSamples) return {NAN, NAN};
  std::array<double, kBatches> means{};
  const std::size_t each = in_order.size() / kBatches;
  // Samples that do not fill a batch are left out at the beginning, which is the least steady part.
  const std::size_t skipped = in_order.size() - each * kBatches;
  for (std::size_t i = 0; i < kBatches; ++i) means[i] = mean_of_all(in_order.subspan(skipped + i * each, each));
  return {half_width_of_times(means), p99_half_width(in_order)};
}

}  // namespace specsim::serve
