#include "sim/experiments/judge/round_output.h"

#include "sim/foundation/math/quantiles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace specsim::judge {

namespace {

// The normal limit is used from this number of expected tokens per class.
constexpr double kFewTokens = 1000.0;

struct Deviations {
  std::vector<double> mean;        // [bucket]: observed - expected
  std::vector<double> covariance;  // [bucket][bucket]
};

// The deviations' chi-squared distance by their covariance. Eliminates one bucket after the other, always the one with the
// largest remaining variance. `certain`: buckets without variance that deviate all the same.
struct Distance {
  double squared = 0.0;
  int rank = 0;
  bool certain = false;
};

Distance distance_of(Deviations own) {
  const std::size_t size = own.mean.size();
  const auto entry = [&](std::size_t a, std::size_t b) -> double& { return own.covariance[a * size + b]; };
  std::vector<bool> open(size, true);
  std::vector<double> whole(size);  // original variances; a remainder that is tiny relative to them counts as rounding
  for (std::size_t k = 0; k < size; ++k) whole[k] = entry(k, k);
  Distance distance;
  for (std::size_t step = 0; step < size; ++step) {
    constexpr double kRounding = 1e-9;
    std::size_t pivot = size;
    for (std::size_t k = 0; k < size; ++k)
      if (open[k] && entry(k, k) > kRounding * std::max(whole[k], 1.0) && (pivot == size || entry(k, k) > entry(pivot, pivot)))
        pivot = k;
    if (pivot == size) break;
    open[pivot] = false;
    const double variance = entry(pivot, pivot);
    distance.squared += own.mean[pivot] * own.mean[pivot] / variance;
    ++distance.rank;
    for (std::size_t a = 0; a < size; ++a) {
      if (!open[a]) continue;
      const double share = entry(a, pivot) / variance;
      own.mean[a] -= share * own.mean[pivot];
      for (std::size_t b = 0; b < size; ++b)
        if (open[b]) entry(a, b) -= share * entry(pivot, b);
    }
  }
  constexpr double kLessThanOne = 0.5;  // tokens are whole numbers
  for (std::size_t k = 0; k < size; ++k) distance.certain = distance.certain || (open[k] && std::abs(own.mean[k]) > kLessThanOne);
  return distance;
}

}  // namespace

double round_output_p(const theory::TokenMoments& tokens, std::span<const std::uint64_t> output, std::uint64_t rounds) {
  const auto n = static_cast<double>(rounds);
  const std::size_t classes = tokens.classes();
  if (rounds == 0) return std::numeric_limits<double>::quiet_NaN();
  std::vector<std::size_t> bucket(classes);  // the bucket in which a class is counted
  std::size_t buckets = 1;                   // the first is the pool
  bool forbids = false;
  double pooled = 0.0;
  std::size_t least = 0;  // the class with the fewest tokens that is not pooled
  for (std::size_t k = 0; k < classes; ++k) {
    const double expected = n * tokens.mean()[k];
    forbids = forbids || expected == 0.0;
    if (expected == 0.0 && output[k] > 0) return 0.0;
    bucket[k] = expected >= kFewTokens ? buckets++ : 0;
    if (bucket[k] == 0)
      pooled += expected;
    else if (bucket[least] == 0 || tokens.mean()[k] < tokens.mean()[least])
      least = k;
  }
  if (buckets == 1 && pooled < kFewTokens) return forbids ? 1.0 : std::numeric_limits<double>::quiet_NaN();
  // A pool that is still too small joins the smallest of the others.
  if (pooled < kFewTokens)
    for (std::size_t k = 0; k < classes; ++k)
      if (bucket[k] == 0) bucket[k] = bucket[least];
  Deviations own{std::vector<double>(buckets, 0.0), std::vector<double>(buckets * buckets, 0.0)};
  const std::vector<double> covariance = tokens.covariance();
  for (std::size_t a = 0; a < classes; ++a) {
    own.mean[bucket[a]] += static_cast<double>(output[a]) - n * tokens.mean()[a];
    for (std::size_t b = 0; b < classes; ++b) own.covariance[bucket[a] * buckets + bucket[b]] += n * covariance[a * classes + b];
  }
  const Distance distance = distance_of(std::move(own));
  if (distance.certain) return 0.0;
  if (distance.rank > 0) return math::chi_squared_tail(distance.squared, distance.rank);
  return buckets > 1 || forbids ? 1.0 : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace specsim::judge
