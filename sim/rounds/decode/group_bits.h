// Addressed random bits for the rounds of a group of sequences. Drawing them in batches takes a quarter of the time of single
// draws.
#pragma once

#include "sim/foundation/math/ratio_table.h"
#include "sim/foundation/rng/address.h"
#include "sim/rounds/decode/random_bits.h"

#include <array>
#include <cstdint>

namespace specsim::decode {

class GroupBits {
 public:
  static constexpr std::uint32_t kGroup = 64;

  // `source` must outlive it.
  GroupBits(BitSource& source, std::uint64_t first_sequence) : source_(&source), first_sequence_(first_sequence) {}
  void begin(std::uint32_t round) {
    round_ = round;
    ++generation_;
  }
  void set_lane(std::uint32_t lane) { lane_ = lane; }

  struct Draw {
    Token token = 0;
    double u = 0.0;  // uniform that decides whether the token is accepted
  };
  // A draft token at `node`. `common`: every lane has these distributions there.
  Draw draft(int node, const math::RatioTable& distributions, bool common) {
    if (node <= kBatchedNodes) {
      DraftBatch& batch = nodes_[static_cast<std::size_t>(node - 1)];
      if (batch.wants(generation_)) fill(batch, node, common ? &distributions : nullptr);
      if (batch.filled)
        return {common ? batch.tokens[lane_] : distributions.pick_draft(batch.random_bits[lane_]),
                rng::to_unit(batch.accept_bits[lane_])};
    }
    const rng::BitsPair random_bits = one(rng::Purpose::draft_accept, node - 1);
    return {distributions.pick_draft(random_bits.first), rng::to_unit(random_bits.second)};
  }
  double accept(int node) { return rng::to_unit(one(rng::Purpose::draft_accept, node - 1).second); }
  std::uint64_t final_token(int depth) {
    if (depth < kBatchedDepths) {
      Batch& batch = depths_[static_cast<std::size_t>(depth)];
      if (batch.wants(generation_)) fill(batch, rng::Purpose::final_token, depth, unused_.data());
      if (batch.filled) return batch.random_bits[lane_];
    }
    return one(rng::Purpose::final_token, depth).first;
  }
  [[nodiscard]] std::uint64_t single(rng::Purpose purpose, int node) const { return one(purpose, node).first; }

 private:
  static constexpr std::uint32_t kWorthwhile = 12;  // fewest lanes for which a batch pays; fewer are drawn singly
  // Only the first nodes and depths are visited so often that a batch pays.
  static constexpr int kBatchedNodes = 64;
  static constexpr int kBatchedDepths = 16;

  struct Batch {
    std::uint32_t generation = 0;
    bool filled = true;            // this round has a batch; otherwise bits are drawn singly
    std::uint32_t asked = kGroup;  // lanes that have asked for it in this round so far
    std::array<std::uint64_t, kGroup> random_bits;

    // Every lane that needs this batch calls this in each round. Returns true to the first caller if filling the batch pays; that
    // caller must fill it. The estimate assumes that as many lanes will ask as in the last round in which any did.
    bool wants(std::uint32_t now) {
      const bool first = generation != now;
      if (first) {
        generation = now;
        filled = asked >= kWorthwhile;
        asked = 0;
      }
      ++asked;
      return first && filled;
    }
  };
  struct DraftBatch : Batch {
    std::array<std::uint64_t, kGroup> accept_bits;
    std::array<Token, kGroup> tokens;  // if the distributions are common
  };

  [[nodiscard]] rng::BitsPair one(rng::Purpose purpose, int position) const;
  void fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const;
  void fill(DraftBatch& batch, int node, const math::RatioTable* common) const;

  BitSource* source_;
  std::uint64_t first_sequence_;
  std::uint32_t lane_ = 0;
  std::uint32_t round_ = 0;
  std::uint32_t generation_ = 0;
  std::array<DraftBatch, kBatchedNodes> nodes_;
  std::array<Batch, kBatchedDepths> depths_;
  std::array<std::uint64_t, kGroup> unused_;
};

}  // namespace specsim::decode
