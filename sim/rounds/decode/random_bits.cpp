#include "sim/rounds/decode/random_bits.h"

#include "sim/foundation/base/check.h"

#include <array>

namespace specsim::decode {

namespace {

rng::CounterBatch counters_of(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
                              const std::uint32_t* lanes) {
  return {.c0 = rng::counter_word0(purpose, position),
          .positions = nullptr,
          .c1_common = word1,
          .c1 = nullptr,
          .c2 = static_cast<std::uint32_t>(first_sequence),
          .lanes = lanes,
          .c3 = static_cast<std::uint32_t>(first_sequence >> 32)};
}

}  // namespace

void BitSource::final_token(std::uint32_t round, std::uint64_t first_sequence, std::size_t count, std::uint64_t* random_bits) {
  constexpr std::size_t kMostLanes = 256;
  SPECSIM_CHECK(count % 2 == 0 && count <= kMostLanes && first_sequence % 2 == 0, "count = {}, sequence = {}", count,
                first_sequence);
  std::array<std::uint64_t, kMostLanes / 2> even;
  std::array<std::uint64_t, kMostLanes / 2> odd;
  batch(rng::Purpose::final_token, 0, round, first_sequence / 2, nullptr, count / 2, even.data(), odd.data());
  for (std::size_t i = 0; i < count / 2; ++i) {
    random_bits[2 * i] = even[i];
    random_bits[2 * i + 1] = odd[i];
  }
}

rng::BitsPair PhiloxBits::at(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t sequence) {
  return rng::philox_bits({rng::counter_word0(purpose, position), word1, static_cast<std::uint32_t>(sequence),
                           static_cast<std::uint32_t>(sequence >> 32)},
                          key_);
}

void BitSource::batch_at(rng::Purpose purpose, const std::uint32_t* positions, std::uint32_t word1, std::uint64_t first_sequence,
                         const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) {
  for (std::size_t i = 0; i < count; ++i) {
    const rng::BitsPair bits = at(purpose, positions[i], word1, first_sequence + lanes[i]);
    first[i] = bits.first;
    second[i] = bits.second;
  }
}

void PhiloxBits::batch_at(rng::Purpose purpose, const std::uint32_t* positions, std::uint32_t word1, std::uint64_t first_sequence,
                          const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) {
  rng::CounterBatch counters = counters_of(purpose, 0, word1, first_sequence, lanes);
  counters.positions = positions;
  rng::philox_batch(counters, key_, count, first, second);
}

void PhiloxBits::batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
                       const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) {
  rng::philox_batch(counters_of(purpose, position, word1, first_sequence, lanes), key_, count, first, second);
}

}  // namespace specsim::decode
