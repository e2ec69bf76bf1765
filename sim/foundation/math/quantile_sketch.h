// Quantiles of a stream of samples in fixed memory, with a stated relative error. Sketches of parts merge into the sketch of the
// whole, whatever the order.
#pragma once

#include <cstdint>
#include <vector>

namespace specsim::math {

// Counts of samples in buckets whose bounds grow by a constant factor, as DDSketch (Masson, Rim and Lee 2019, PVLDB 12, 2195)
// without its limit of buckets. Counts, the largest and the smallest sample are exact.
class QuantileSketch {
 public:
  static constexpr double kRelativeError = 0.005;  // of every quantile of samples above kSmallest
  static constexpr double kSmallest = 1e-9;        // samples up to it count as 0

  // A sample, 0 or more, and its bucket, which is the same in all sketches.
  class Sample {
   public:
    explicit Sample(double value);

   private:
    friend class QuantileSketch;
    double value_;
    std::int64_t bucket_;  // no meaning up to kSmallest
  };
  // Adds a sample `count` times.
  void add(const Sample& sample, std::uint64_t count = 1);
  void add(double value, std::uint64_t count = 1) { add(Sample(value), count); }
  void merge(const QuantileSketch& other);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] double max() const { return max_; }
  // The sample of rank floor(share (count - 1)) in increasing order, within kRelativeError. NaN without samples.
  [[nodiscard]] double quantile(double share) const;
  // How many samples are at most `limit`: exact up to those within kRelativeError of it.
  [[nodiscard]] std::uint64_t at_most(double limit) const;

 private:
  void reach(std::int64_t bucket);

  std::uint64_t count_ = 0;
  std::uint64_t zeros_ = 0;
  double min_ = 0.0;
  double max_ = 0.0;
  std::int64_t first_ = 0;              // number of the first bucket
  std::vector<std::uint64_t> buckets_;  // bucket i has samples in (g^(i-1), g^i], g = (1 + e) / (1 - e)
};

}  // namespace specsim::math
