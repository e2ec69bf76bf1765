// The addresses of random numbers. Each random number of a simulation has its own, so results do not depend on threads, shards,
// order of construction or device:
//
//   key     (seed, pairing group or name of a distribution)      cells that differ only in `decode` or `cost` share a group
//   counter word 0: purpose << 24 | position            position in the round (0..), or a part's own index
//           word 1: round, or text position             rng::Purpose states which one for each purpose
//           word 2: sequence, low 32 bits
//           word 3: sequence, high 32 bits
//
// A block holds two 64-bit words; two uses that always come together share a block, so a draft token and the decision on
// it cost one.
#pragma once

#include "sim/foundation/rng/philox.h"

#include <cstdint>
#include <string_view>

namespace specsim::rng {

enum class Purpose : std::uint32_t {
  draft_accept = 1,  // word 1 = round; first: the draft token, second: the decision on it. In a block position = node - 1
  final_token = 2,   // word 1 = round; word 2 = sequence / 2: first for even sequences, second for odd. In a block position =
                     // depth of the previous token, and word 2 = sequence: first
  context = 3,       // word 1 = text position; first: the context process's step
  start = 4,         // first: the start state, or the request's type
  distribution = 5,  // word 1 = index of the use; draws of the families
  judge = 6,         // word 1 = text position; first: places a token within its part (decode/simulator_fresh.cpp)
  length = 7,        // first: the position of a sequence's end token
  redraft = 8,       // word 1 = round, position = node; first: a draft token that replaces one drawn before
  child = 9,         // word 1 = round, position = node; first: which of a node's children
  window = 10,       // word 1 = index of the use; first: the start of a drafter's guesses
  altered = 11,      // position = depth, words 2 and 3 = context; first: whether a drafter's distribution there is an altered one
};

constexpr std::uint32_t counter_word0(Purpose purpose, std::uint32_t position) {
  return static_cast<std::uint32_t>(purpose) << 24 | position;
}

// A uniform number in [0, 1) from the high 53 bits.
constexpr double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

// FNV-1a with a final mix (the finaliser of SplitMix64): a stable 64-bit hash of a text.
constexpr std::uint64_t hash_text(std::string_view text, std::uint64_t basis = 0xcbf29ce484222325ULL) {
  std::uint64_t h = basis;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

// The key of everything drawn under `seed` for `group`; two rounds of Philox mix the two 64-bit numbers.
inline Key make_key(std::uint64_t seed, std::uint64_t group) {
  const Block out = philox4x32_10({static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                                   static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32)},
                                  {0x73706563, 0x73696d00});
  return {out[0], out[1]};
}

// A uniform random bit generator for Boost.Random's distributions that reads consecutive blocks from one address.
class Stream {
 public:
  using result_type = std::uint64_t;
  Stream(Key key, Purpose purpose, std::uint32_t position, std::uint64_t sequence)
      : key_(key), position_(counter_word0(purpose, position)), sequence_(sequence) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() {
    if (has_second_) {
      has_second_ = false;
      return random_bits_.second;
    }
    random_bits_ = philox_bits(
        {position_, index_++, static_cast<std::uint32_t>(sequence_), static_cast<std::uint32_t>(sequence_ >> 32)}, key_);
    has_second_ = true;
    return random_bits_.first;
  }

 private:
  Key key_;
  std::uint32_t position_;
  std::uint64_t sequence_;
  std::uint32_t index_ = 0;
  BitsPair random_bits_;
  bool has_second_ = false;
};

}  // namespace specsim::rng
