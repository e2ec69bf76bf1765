// Quantile sketches against sorted samples, and merged ones against whole ones.
#include "sim/foundation/math/quantile_sketch.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace specsim::quantile_sketch_test {

namespace {

std::vector<double> lognormal(std::size_t count, double spread) {
  std::mt19937_64 bits(7);
  std::lognormal_distribution<double> draw(2.0, spread);
  std::vector<double> samples(count);
  for (double& one : samples) one = draw(bits);
  return samples;
}

math::QuantileSketch sketch_of(const std::vector<double>& samples, std::size_t from, std::size_t to) {
  math::QuantileSketch sketch;
  for (std::size_t i = from; i < to; ++i) sketch.add(samples[i]);
  return sketch;
}

}  // namespace

TEST_CASE("every quantile of a sketch is within its relative error", "[math]") {
  for (const double spread : {0.01, 1.0, 4.0}) {
    std::vector<double> samples = lognormal(20000, spread);
    const math::QuantileSketch sketch = sketch_of(samples, 0, samples.size());
    std::sort(samples.begin(), samples.end());
    double largest = 0.0;
    for (int i = 0; i <= 1000; ++i) {
      const double share = 0.001 * i;
      const double exact = samples[static_cast<std::size_t>(std::floor(share * 19999.0))];
      largest = std::max(largest, std::abs(sketch.quantile(share) / exact - 1.0));
    }
    CHECK(largest <= math::QuantileSketch::kRelativeError * (1.0 + 1e-9));
    CHECK(largest > 0.9 * math::QuantileSketch::kRelativeError);  // mutant: buckets of half the width would pass unseen
    CHECK(sketch.max() == samples.back());
    CHECK(sketch.quantile(1.0) == samples.back());
    CHECK(sketch.count() == samples.size());
    const double limit = samples[15000];
    const auto near = [&](double factor) {
      return static_cast<std::uint64_t>(std::upper_bound(samples.begin(), samples.end(), factor * limit) - samples.begin());
    };
    CHECK(sketch.at_most(limit) >= near(1.0 - 2.1 * math::QuantileSketch::kRelativeError));
    CHECK(sketch.at_most(limit) <= near(1.0 + 2.1 * math::QuantileSketch::kRelativeError));
  }
}

TEST_CASE("merged sketches are the sketch of all samples, in any order", "[math]") {
  const std::vector<double> samples = lognormal(5000, 2.0);
  const math::QuantileSketch whole = sketch_of(samples, 0, 5000);
  math::QuantileSketch forward = sketch_of(samples, 0, 17);
  math::QuantileSketch backward = sketch_of(samples, 3000, 5000);
  forward.merge(sketch_of(samples, 17, 3000));
  forward.merge(sketch_of(samples, 3000, 5000));
  backward.merge(sketch_of(samples, 17, 3000));
  backward.merge(math::QuantileSketch());
  backward.merge(sketch_of(samples, 0, 17));
  for (int i = 0; i <= 100; ++i) {
    CHECK(forward.quantile(0.01 * i) == whole.quantile(0.01 * i));
    CHECK(backward.quantile(0.01 * i) == whole.quantile(0.01 * i));
  }
  CHECK(forward.count() == 5000);
}

TEST_CASE("zeros and weights of a sketch", "[math]") {
  math::QuantileSketch sketch;
  CHECK(std::isnan(sketch.quantile(0.5)));
  sketch.add(0.0, 3);
  sketch.add(8.0, 6);
  sketch.add(5.0, 0);
  CHECK(sketch.count() == 9);
  CHECK(sketch.quantile(0.25) == 0.0);                                                         // rank 2 of 0 to 8
  CHECK(sketch.quantile(0.375) == Approx(8.0).epsilon(math::QuantileSketch::kRelativeError));  // rank 3
  CHECK(sketch.at_most(1.0) == 3);
  CHECK(sketch.at_most(8.0) == 9);
}

// Mutant: the table's error is taken for 0.
TEST_CASE("samples next to a bucket's bound are in the bucket of their logarithm", "[math]") {
  const double growth = std::log((1.0 + math::QuantileSketch::kRelativeError) / (1.0 - math::QuantileSketch::kRelativeError));
  for (int bucket = -1500; bucket <= 2500; ++bucket) {
    const double bound = std::exp(growth * bucket);
    for (const double value : {bound * (1.0 - 1e-8), std::nextafter(bound, 0.0), bound, bound * (1.0 + 1e-10)}) {
      math::QuantileSketch sketch;  // the samples before and after keep the middle sample's bucket from being cut to the sample
      sketch.add(0.1 * value);
      sketch.add(value);
      sketch.add(10.0 * value);
      const double number = std::ceil(std::log(value) / growth);
      REQUIRE(sketch.quantile(0.5) == (1.0 - math::QuantileSketch::kRelativeError) * std::exp(growth * number));
    }
  }
}

}  // namespace specsim::quantile_sketch_test
