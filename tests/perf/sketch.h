// A plain first sketch of the simulator: one round at a time, a 16-byte alias entry, a sequential generator, all drafts drawn
// before the first is judged. It is the yardstick of the speed tests: machines differ and are busy, ratios in one run hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace specsim::tests {

class Sketch {
 public:
  Sketch(const std::vector<double>& target, const std::vector<double>& draft);
  // Simulates `rounds` rounds at `draft_length`; returns emitted tokens.
  std::uint64_t run(std::uint64_t rounds, int draft_length);

 private:
  struct Slot {
    double share;
    std::uint32_t alias;
  };
  static std::vector<Slot> table(const std::vector<double>& weights);
  double uniform();
  std::uint32_t pick(const std::vector<Slot>& slots);
  std::vector<Slot> draft_;
  std::vector<Slot> residual_;
  std::vector<Slot> target_;
  std::vector<double> ratio_;
  std::uint64_t state_[4] = {1, 2, 3, 4};  // NOLINT(modernize-avoid-c-arrays)
};

}  // namespace specsim::tests
