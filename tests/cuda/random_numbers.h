// Inputs of kernel tests.
#pragma once

#include "sim/foundation/rng/address.h"
#include "sim/lab/cuda/launch.h"

#include <cmath>
#include <vector>

namespace specsim::tests {

// Uniform on [-1, 1), then rounded to bf16 if requested.
inline std::vector<float> numbers(std::size_t count, std::uint64_t seed) {
  rng::Stream stream(rng::make_key(seed, 0), rng::Purpose::distribution, 0, 0);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(2.0 * rng::to_unit(stream()) - 1.0);
  return values;
}
inline std::vector<cuda::Bf16> rounded(const std::vector<float>& values) {
  std::vector<cuda::Bf16> out;
  for (const float x : values) out.push_back(cuda::to_bf16(x));
  return out;
}
inline std::vector<float> as_floats(const std::vector<cuda::Bf16>& values) {
  std::vector<float> out;
  for (const cuda::Bf16 x : values) out.push_back(cuda::to_float(x));
  return out;
}

// |out - reference| / |reference|; NaN if any element is NaN.
template <class A, class B>
double distance(const std::vector<A>& out, const std::vector<B>& reference) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += std::pow(static_cast<double>(out.at(i)) - static_cast<double>(reference[i]), 2);
    size += std::pow(static_cast<double>(reference[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace specsim::tests
