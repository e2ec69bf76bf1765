// Exponential draws that are cheap compared with the event they are for: Marsaglia and Tsang's ziggurat over SplitMix64. For
// timings alone; simulations address their uniforms (sim/foundation/rng/address.h).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace specsim::tests {

class FastExponential {
 public:
  explicit FastExponential(std::uint64_t seed) : state_(seed) {
    // Layer i reaches from x_[i + 1] to x_[i]; all have the area kArea, and the lowest holds the tail beyond x_[1] too.
    constexpr double kEdge = 7.69711747013104972;
    constexpr double kArea = 3.94965982258155730e-3;
    x_[0] = kArea / std::exp(-kEdge);
    x_[1] = kEdge;
    for (std::size_t i = 2; i < kLayers; ++i) x_[i] = -std::log(kArea / x_[i - 1] + std::exp(-x_[i - 1]));
    x_[kLayers] = 0.0;
    for (std::size_t i = 0; i <= kLayers; ++i) y_[i] = std::exp(-x_[i]);
  }

  std::uint64_t word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Mean 1.
  double operator()() {
    double shift = 0.0;
    for (;;) {
      const std::uint64_t bits = word();
      const std::size_t layer = bits & (kLayers - 1);
      const double x = unit(bits) * x_[layer];
      if (x < x_[layer + 1]) [[likely]]
        return shift + x;
      if (layer == 0) {
        shift += x_[1];  // the tail has no memory
        continue;
      }
      if (y_[layer] + unit(word()) * (y_[layer + 1] - y_[layer]) < std::exp(-x)) return shift + x;
    }
  }

 private:
  static constexpr std::size_t kLayers = 256;
  static double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

  std::uint64_t state_;
  std::array<double, kLayers + 1> x_{};
  std::array<double, kLayers + 1> y_{};
};

}  // namespace specsim::tests
