#include "sim/foundation/math/quantile_sketch.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/standard_library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

namespace specsim::math {

namespace {

const double kLogGrowth = std::log((1.0 + QuantileSketch::kRelativeError) / (1.0 - QuantileSketch::kRelativeError));

// The value whose relative distance to both bounds of a bucket is the same.
double middle(std::int64_t bucket) {
  return (1.0 - QuantileSketch::kRelativeError) * std::exp(kLogGrowth * static_cast<double>(bucket));
}

// log(value) / kLogGrowth by a table, within kTableError.
class LogTable {
 public:
  static constexpr double kTableError = 1e-5;
  LogTable() {
    for (std::size_t i = 0; i < kEntries; ++i) {
      const double middle = 1.0 + (static_cast<double>(i) + 0.5) / kEntries;
      entries_[i] = {std::log(middle) / kLogGrowth, 1.0 / middle};
    }
  }
  // A normal number above 0.
  [[nodiscard]] double operator()(double value) const {
    const auto bits = bit_cast<std::uint64_t>(value);
    const Entry& entry = entries_[bits >> (kMantissa - kEntryBits) & (kEntries - 1)];
    const auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> kMantissa) - 1023);
    const auto mantissa = bit_cast<double>((bits & ((std::uint64_t{1} << kMantissa) - 1)) | kOne);
    const double step = mantissa * entry.inverse - 1.0;  // at most 1 / 512, so that its cube is below 1e-8
    return exponent * doubling_ + entry.log + step * (1.0 - 0.5 * step) * per_unit_;
  }

 private:
  static constexpr unsigned kMantissa = 52;
  static constexpr unsigned kEntryBits = 8;
  static constexpr std::size_t kEntries = std::size_t{1} << kEntryBits;
  static constexpr std::uint64_t kOne = bit_cast<std::uint64_t>(1.0);
  struct Entry {
    double log = 0.0;  // of the middle of the entry's mantissas
    double inverse = 1.0;
  };
  std::array<Entry, kEntries> entries_{};
  double doubling_ = std::numbers::ln2 / kLogGrowth;
  double per_unit_ = 1.0 / kLogGrowth;
};

std::int64_t bucket_of(double value) {
  static const LogTable table;
  const double place = table(value);
  const double above = std::ceil(place);
  // Next to a bound the logarithm itself decides, so that the table changes no bucket.
  const bool sure = above - place > LogTable::kTableError && place - (above - 1.0) > LogTable::kTableError;
  return static_cast<std::int64_t>(sure ? above : std::ceil(std::log(value) / kLogGrowth));
}

}  // namespace

QuantileSketch::Sample::Sample(double value) : value_(value), bucket_(value > kSmallest ? bucket_of(value) : 0) {
  SPECSIM_CHECK(value >= 0.0, "a sample below 0");
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

void QuantileSketch::add(const Sample& sample, std::uint64_t count) {
  if (count == 0) return;
  const double value = sample.value_;
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  count_ += count;
  if (value <= kSmallest) {
    zeros_ += count;
    return;
  }
  const std::int64_t bucket = sample.bucket_;
  if (bucket < first_ || bucket - first_ >= static_cast<std::int64_t>(buckets_.size())) reach(bucket);
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
