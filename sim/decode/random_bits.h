// Where a round's random words come from: Philox in a simulation, a script in an audit.
#pragma once

#include "sim/rng/address.h"

#include <cstddef>
#include <cstdint>

namespace specsim::decode {

class BitSource {
 public:
  BitSource() = default;
  BitSource(const BitSource&) = delete;
  BitSource& operator=(const BitSource&) = delete;
  virtual ~BitSource() = default;
  // For each of `count` lanes (sequence = first_sequence + lane): the word that draws the draft token at `position` of
  // `round`, and the word that decides on it.
  virtual void draft_accept(std::uint32_t round, std::uint32_t position, std::uint64_t first_sequence, const std::uint32_t* lanes,
                            std::size_t count, std::uint64_t* draft, std::uint64_t* accept) = 0;
  // For lanes 0 .. count-1 (count even, first_sequence even): the word that draws the final token of `round`.
  virtual void final_token(std::uint32_t round, std::uint64_t first_sequence, std::size_t count, std::uint64_t* random_bits) = 0;
};

class PhiloxBits final : public BitSource {
 public:
  explicit PhiloxBits(rng::Key key) : key_(key) {}
  void draft_accept(std::uint32_t round, std::uint32_t position, std::uint64_t first_sequence, const std::uint32_t* lanes,
                    std::size_t count, std::uint64_t* draft, std::uint64_t* accept) override;
  void final_token(std::uint32_t round, std::uint64_t first_sequence, std::size_t count, std::uint64_t* random_bits) override;

 private:
  rng::Key key_;
};

}  // namespace specsim::decode
