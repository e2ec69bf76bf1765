// The references of the speed tests. Machines differ and are busy: arithmetic goals are ratios to Sketch, memory goals are ratios
// to RandomReads, and both are measured in the same run. Both are fast: they are compiled for the processor that they run on and
// do nothing else.
#pragma once

#include "sim/foundation/base/huge_array.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::tests {

// xoshiro256++ by Blackman and Vigna, from its published description.
class Xoshiro {
 public:
  std::uint64_t operator()() {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4] = {1, 2, 3, 4};  // NOLINT(modernize-avoid-c-arrays)
};

// A chain round over prepared tables, written by hand for speed and without counts. A token costs one number of the generator and
// one entry of 4 + 4 bytes, and the decision on it one number more and a float. Tokens after a rejection are not drawn.
class Sketch {
 public:
  Sketch(const std::vector<double>& target, const std::vector<double>& draft);
  // Simulates `rounds` rounds at `draft_length`; returns emitted tokens.
  std::uint64_t run(std::uint64_t rounds, int draft_length);

 private:
  struct Slot {
    float share;
    std::uint32_t alias;
  };
  static std::vector<Slot> table(const std::vector<double>& weights);
  std::uint32_t pick(const std::vector<Slot>& slots);
  std::vector<Slot> draft_;
  std::vector<Slot> residual_;
  std::vector<Slot> target_;
  std::vector<float> ratio_;
  Xoshiro random_;
};

// Independent reads of words at random places of an array: as many at once as the processor allows.
class RandomReads {
 public:
  explicit RandomReads(std::size_t bytes) : words_(bytes / sizeof(std::uint64_t)) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_.data()[i] = i;
  }
  // Reads the given number of words; returns a value that depends on all of them.
  std::uint64_t run(std::uint64_t reads);

 private:
  HugeArray words_;
  Xoshiro random_;
};

// Independent additions in six registers, `steps` of them in each: they keep a core's integer units full. Two threads of them
// take as long as one only on two cores. On the two hyperthreads of one core, where a guest's processors may be from one second
// to the next, they take twice as long.
void keep_core_full(std::uint64_t steps);

// The processor as text: its name, its caches, and its current frequency, from a chain of additions that take a cycle each.
std::string machine();

}  // namespace specsim::tests
