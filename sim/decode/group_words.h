// The addressed words of rounds of a group of sequences, drawn in batches, which costs a quarter of drawing them singly.
#pragma once

#include "sim/math/ratio_table.h"
#include "sim/rng/address.h"
#include "sim/rng/philox.h"

#include <array>
#include <cstdint>

namespace specsim::decode {

class GroupWords {
 public:
  static constexpr std::uint32_t kGroup = 64;

  GroupWords(rng::Key key, std::uint64_t first_sequence) : key_(key), first_sequence_(first_sequence) {}
  void begin(std::uint32_t round) {
    round_ = round;
    ++generation_;
  }
  void set_lane(std::uint32_t lane) { lane_ = lane; }

  struct Draw {
    Token token = 0;
    double u = 0.0;  // that decides on it
  };
  // `common`: the laws are those of every lane at this node.
  Draw draft(int node, const math::RatioTable& laws, bool common) {
    if (node <= kBatchedNodes) {
      DraftBatch& batch = nodes_[static_cast<std::size_t>(node - 1)];
      if (batch.wants(generation_)) fill(batch, node, common ? &laws : nullptr);
      if (batch.filled)
        return {common ? batch.tokens[lane_] : laws.pick_draft(batch.words[lane_]), rng::to_unit(batch.accept_words[lane_])};
    }
    const rng::WordPair words = one(rng::Purpose::draft_accept, node - 1);
    return {laws.pick_draft(words.first), rng::to_unit(words.second)};
  }
  double accept(int node) { return rng::to_unit(one(rng::Purpose::draft_accept, node - 1).second); }
  std::uint64_t final_token(int depth) {
    if (depth < kBatchedDepths) {
      Batch& batch = depths_[static_cast<std::size_t>(depth)];
      if (batch.wants(generation_)) fill(batch, rng::Purpose::final_token, depth, unused_.data());
      if (batch.filled) return batch.words[lane_];
    }
    return one(rng::Purpose::final_token, depth).first;
  }
  [[nodiscard]] std::uint64_t single(rng::Purpose purpose, int node) const { return one(purpose, node).first; }

 private:
  static constexpr std::uint32_t kWorthwhile = 12;  // of a group: fewer are drawn singly
  // Only the first nodes and depths are visited so often that a batch pays.
  static constexpr int kBatchedNodes = 64;
  static constexpr int kBatchedDepths = 16;

  struct Batch {
    std::uint32_t generation = 0;
    bool filled = true;            // whether there is a batch in this round, or words are drawn singly
    std::uint32_t asked = kGroup;  // in this round so far
    std::array<std::uint64_t, kGroup> words;

    // Counts the asking; true: the batch is to be filled. As many as in the last round that came here will be asked for.
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
    std::array<std::uint64_t, kGroup> accept_words;
    std::array<Token, kGroup> tokens;  // where the laws are common
  };

  [[nodiscard]] rng::WordPair one(rng::Purpose purpose, int position) const;
  void fill(Batch& batch, rng::Purpose purpose, int position, std::uint64_t* second) const;
  void fill(DraftBatch& batch, int node, const math::RatioTable* common) const;

  rng::Key key_;
  std::uint64_t first_sequence_;
  std::uint32_t lane_ = 0;
  std::uint32_t round_ = 0;
  std::uint32_t generation_ = 0;
  std::array<DraftBatch, kBatchedNodes> nodes_;
  std::array<Batch, kBatchedDepths> depths_;
  std::array<std::uint64_t, kGroup> unused_;
};

}  // namespace specsim::decode
