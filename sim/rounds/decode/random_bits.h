// Sources of a round's random bits: Philox in a simulation, a script in an audit.
#pragma once

#include "sim/foundation/rng/address.h"

#include <cstddef>
#include <cstdint>

namespace specsim::decode {

class BitSource {
 public:
  BitSource() = default;
  BitSource(const BitSource&) = delete;
  BitSource& operator=(const BitSource&) = delete;
  virtual ~BitSource() = default;

  // The two 64-bit numbers at an address; rng::Purpose defines `word1`.
  virtual rng::BitsPair at(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t sequence) = 0;
  // The numbers of at() for `count` sequences at once, in a quarter of the time. The sequences are first_sequence + lanes[i], or
  // first_sequence + i without lanes.
  virtual void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
                     const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) = 0;
  // The numbers of at() if each lane has its own position: `positions` and `lanes` hold `count` elements.
  virtual void batch_at(rng::Purpose purpose, const std::uint32_t* positions, std::uint32_t word1, std::uint64_t first_sequence,
                        const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second);

  // For each of `count` lanes: the number that draws the draft token at `position` of `round`, and the one that decides on it.
  void draft_accept(std::uint32_t round, std::uint32_t position, std::uint64_t first_sequence, const std::uint32_t* lanes,
                    std::size_t count, std::uint64_t* draft, std::uint64_t* accept) {
    batch(rng::Purpose::draft_accept, position, round, first_sequence, lanes, count, draft, accept);
  }
  // For lanes 0 .. count-1 (count even and at most 256, first_sequence even): the number that draws the final token of `round`
  // under rules that judge positions one by one. Two sequences share an address.
  void final_token(std::uint32_t round, std::uint64_t first_sequence, std::size_t count, std::uint64_t* random_bits);
};

class PhiloxBits final : public BitSource {
 public:
  explicit PhiloxBits(rng::Key key) : key_(key) {}
  rng::BitsPair at(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t sequence) override;
  void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
             const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) override;
  void batch_at(rng::Purpose purpose, const std::uint32_t* positions, std::uint32_t word1, std::uint64_t first_sequence,
                const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) override;

 private:
  rng::Key key_;
};

}  // namespace specsim::decode
