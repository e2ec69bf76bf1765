#include "sim/foundation/math/quantile_sketch.h"

#include "sim/foundation/base/check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace specsim::math {

namespace {

const double kLogGrowth = std::log((1.0 + QuantileSketch::kRelativeError) / (1.0 - QuantileSketch::kRelativeError));

// The value whose relative distance to both bounds of a bucket is the same.
double middle(std::int64_t bucket) {
  return (1.0 - QuantileSketch::kRelativeError) * std::exp(kLogGrowth * static_cast<double>(bucket));
}

}  // namespace

std::int64_t QuantileSketch::bucket_of(double value) {
  return static_cast<std::int64_t>(std::ceil(std::log(value) / kLogGrowth));
}

void QuantileSketch::reach(std::int64_t bucket) {
  if (buckets_.empty()) first_ = bucket;
  if (bucket < first_) {
    buckets_.insert(buckets_.begin(), static_cast<std::size_t>(first_ - bucket), 0);
    first_ = bucket;
  }
  const auto place = static_cast<std::size_t>(bucket - first_);
  if (place >= buckets_.size()) buckets_.resize(place + 1, 0);
}

void QuantileSketch::add(double value, std::uint64_t count) {
  SPECSIM_CHECK(value >= 0.0, "a sample below 0");
  if (count == 0) return;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  count_ += count;
  if (value <= kSmallest) {
    zeros_ += count;
    return;
  }
  const std::int64_t bucket = bucket_of(value);
  reach(bucket);
  buckets_[static_cast<std::size_t>(bucket - first_)] += count;
}

void QuantileSketch::merge(const QuantileSketch& other) {
  if (other.count_ == 0) return;
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  zeros_ += other.zeros_;
  if (other.buckets_.empty()) return;
  reach(other.first_);
  reach(other.first_ + static_cast<std::int64_t>(other.buckets_.size()) - 1);
  for (std::size_t i = 0; i < other.buckets_.size(); ++i)
    buckets_[static_cast<std::size_t>(other.first_ - first_) + i] += other.buckets_[i];
}

double QuantileSketch::quantile(double share) const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto rank = static_cast<std::uint64_t>(std::floor(share * static_cast<double>(count_ - 1)));
  if (rank + 1 >= count_) return max_;
  if (rank < zeros_) return 0.0;
  std::uint64_t below = zeros_;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (rank < below) return std::clamp(middle(first_ + static_cast<std::int64_t>(i)), min_, max_);
  }
  return max_;
}

std::uint64_t QuantileSketch::at_most(double limit) const {
  if (limit >= max_) return count_;
  std::uint64_t below = limit >= 0.0 ? zeros_ : 0;
  for (std::size_t i = 0; i < buckets_.size() && middle(first_ + static_cast<std::int64_t>(i)) <= limit; ++i)
    below += buckets_[i];
  return below;
}

}  // namespace specsim::math
