#include "sim/decode/random_bits.h"

#include "sim/base/check.h"

#include <array>

namespace specsim::decode {

namespace {
constexpr std::size_t kBatch = 256;
}

void PhiloxBits::draft_accept(std::uint32_t round, std::uint32_t position, std::uint64_t first_sequence,
                              const std::uint32_t* lanes, std::size_t count, std::uint64_t* draft, std::uint64_t* accept) {
  rng::philox_batch({.c0 = rng::counter_word0(rng::Purpose::draft_accept, position),
                     .c1_common = round,
                     .c1 = nullptr,
                     .c2 = static_cast<std::uint32_t>(first_sequence),
                     .lanes = lanes,
                     .c3 = static_cast<std::uint32_t>(first_sequence >> 32)},
                    key_, count, draft, accept);
}

void PhiloxBits::final_token(std::uint32_t round, std::uint64_t first_sequence, std::size_t count, std::uint64_t* random_bits) {
  SPECSIM_CHECK(count % 2 == 0 && count <= kBatch && first_sequence % 2 == 0, "count = {}, sequence = {}", count, first_sequence);
  std::array<std::uint64_t, kBatch / 2> even;
  std::array<std::uint64_t, kBatch / 2> odd;
  const std::uint64_t pair = first_sequence / 2;
  rng::philox_batch({.c0 = rng::counter_word0(rng::Purpose::final_token, 0),
                     .c1_common = round,
                     .c1 = nullptr,
                     .c2 = static_cast<std::uint32_t>(pair),
                     .lanes = nullptr,
                     .c3 = static_cast<std::uint32_t>(pair >> 32)},
                    key_, count / 2, even.data(), odd.data());
  for (std::size_t i = 0; i < count / 2; ++i) {
    random_bits[2 * i] = even[i];
    random_bits[2 * i + 1] = odd[i];
  }
}

}  // namespace specsim::decode
