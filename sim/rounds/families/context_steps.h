// Shared by context processes: the addresses of their random numbers, and a process that stays in one context.
#pragma once

#include "sim/foundation/rng/philox.h"
#include "sim/rounds/families/context_process.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace specsim::families {

// The random bits of a sequence's first context. `purpose`: start, or context if text position 0 is a step like any other.
inline std::uint64_t first_bits(rng::Key key, rng::Purpose purpose, std::uint64_t sequence) {
  return rng::philox_bits({rng::counter_word0(purpose, 0), 0, static_cast<std::uint32_t>(sequence),
                           static_cast<std::uint32_t>(sequence >> 32)},
                          key)
      .first;
}

// Calls each(lane, bits) for the lanes of ContextProcess::step, with the random bits of each lane's step to its next text
// position. The bits are drawn in batches, which is several times as fast as one by one.
template <class Each>
void each_step(rng::Key key, std::uint64_t first_sequence, const std::uint32_t* lanes, std::size_t count,
               const std::uint32_t* text_position, const Each& each) {
  constexpr std::size_t kBatch = 256;
  std::array<std::uint32_t, kBatch> next;
  std::array<std::uint64_t, kBatch> first;
  std::array<std::uint64_t, kBatch> second;
  for (std::size_t begin = 0; begin < count; begin += kBatch) {
    const std::size_t size = std::min(kBatch, count - begin);
    for (std::size_t i = 0; i < size; ++i) next[i] = text_position[lanes[begin + i]] + 1;
    rng::philox_batch({.c0 = rng::counter_word0(rng::Purpose::context, 0),
                       .positions = nullptr,
                       .c1_common = 0,
                       .c1 = next.data(),
                       .c2 = static_cast<std::uint32_t>(first_sequence),
                       .lanes = lanes + begin,
                       .c3 = static_cast<std::uint32_t>(first_sequence >> 32)},
                      key, size, first.data(), second.data());
    for (std::size_t i = 0; i < size; ++i) each(lanes[begin + i], first[i]);
  }
}

// A process whose sequences stay in the context that they begin in: context 0, unless start() is overridden.
class StillProcess : public ContextProcess {
 public:
  [[nodiscard]] const ContextShape& shape() const final { return shape_; }
  void start(rng::Key /*key*/, std::uint64_t /*first_sequence*/, std::size_t count, std::uint32_t* context) const override {
    std::fill_n(context, count, 0U);
  }
  [[nodiscard]] bool moves() const final { return false; }
  void step(rng::Key, std::uint64_t, const std::uint32_t*, std::size_t, const std::uint32_t*, const Token*,
            std::uint32_t*) const final {}

 protected:
  ContextShape shape_;
};

}  // namespace specsim::families
