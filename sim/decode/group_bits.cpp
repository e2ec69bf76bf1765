#include "sim/decode/group_bits.h"

namespace specsim::decode {

rng::BitsPair GroupBits::one(rng::Purpose purpose, int position) const {
  const std::uint64_t sequence = first_sequence_ + lane_;
  return rng::philox_bits({rng::counter_word0(purpose, static_cast<std::uint32_t>(position)), round_,
                           static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                          key_);
}

void GroupBits::fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const {
  rng::philox_batch({.c0 = rng::counter_word0(purpose, static_cast<std::uint32_t>(position)),
                     .c1_common = round_,
                     .c1 = nullptr,
                     .c2 = static_cast<std::uint32_t>(first_sequence_),
                     .lanes = nullptr,
                     .c3 = static_cast<std::uint32_t>(first_sequence_ >> 32)},
                    key_, kGroup, batch.random_bits.data(), second);
}

void GroupBits::fill(DraftBatch& batch, int node, const math::RatioTable* common) const {
  fill(batch, rng::Purpose::draft_accept, node - 1, batch.accept_bits.data());
  if (common == nullptr) return;
  // The memory accesses of all lanes at once.
  for (const std::uint64_t bits : batch.random_bits) common->prefetch_draft(bits);
  for (std::uint32_t lane = 0; lane < kGroup; ++lane) {
    batch.tokens[lane] = common->pick_draft(batch.random_bits[lane]);
    common->prefetch_distributions(batch.tokens[lane]);
  }
}

}  // namespace specsim::decode
