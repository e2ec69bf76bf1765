#include "sim/rounds/decode/group_bits.h"

namespace specsim::decode {

rng::BitsPair GroupBits::one(rng::Purpose purpose, int position) const {
  return source_->at(purpose, static_cast<std::uint32_t>(position), round_, first_sequence_ + lane_);
}

void GroupBits::fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const {
  source_->batch(purpose, static_cast<std::uint32_t>(position), round_, first_sequence_, nullptr, kGroup,
                 batch.random_bits.data(), second);
}

void GroupBits::fill(DraftBatch& batch, int node, const math::RatioTable* common) const {
  fill(batch, rng::Purpose::draft_accept, node - 1, batch.accept_bits.data());
  if (common == nullptr) return;
  // Issues the memory accesses of all lanes at once.
  for (const std::uint64_t bits : batch.random_bits) common->prefetch_draft(bits);
  for (std::uint32_t lane = 0; lane < kGroup; ++lane) {
    batch.tokens[lane] = common->pick_draft(batch.random_bits[lane]);
    common->prefetch_distributions(batch.tokens[lane]);
  }
}

}  // namespace specsim::decode
