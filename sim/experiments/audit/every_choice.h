// Enumerates every outcome of every random choice of a round, with random bits that produce it.
#pragma once

#include "sim/foundation/base/wide.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/verify/choices.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace specsim::audit {

struct Piece;

// Random bits by address, for round 0 of any sequence. Addresses without bits give zeros.
class ReplayedBits final : public decode::BitSource {
 public:
  void set(rng::Purpose purpose, std::uint32_t position, bool second, std::uint64_t bits);
  rng::BitsPair at(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t sequence) override;
  void batch(rng::Purpose purpose, std::uint32_t position, std::uint32_t word1, std::uint64_t first_sequence,
             const std::uint32_t* lanes, std::size_t count, std::uint64_t* first, std::uint64_t* second) override;

 private:
  std::map<std::pair<rng::Purpose, std::uint32_t>, rng::BitsPair> bits_;
};

// Finds each choice's share of the random numbers by bisection of the code that simulations draw with: verify::accepts for
// decisions, Pickable::pick for tokens. The caller plays a round again and again with this object in place of random numbers,
// until advance() returns false.
class EveryChoice final : public verify::ChoiceSource {
 public:
  // The address of a final token: its depth in the block, or one address per round.
  enum class Finals { by_depth, one };

  EveryChoice(int vocab, Finals finals);
  Token pick(Use use, int node, int depth, const verify::Pickable& distribution) override;
  bool accept(int node, verify::Odds odds) override;

  // The round that was just played.
  [[nodiscard]] long double probability() const;
  // Random bits that make a simulation play the same round: the lowest ones per choice, or the highest.
  void script(bool highest, ReplayedBits& bits) const;
  // Goes on to the next round; false after the last.
  bool advance();

 private:
  struct Option {
    Token token = 0;  // the token, or a decision: 1 for yes, 0 for no
    uint128 size = 0;
    std::uint64_t lowest = 0;
    std::uint64_t highest = 0;
  };
  struct Choice {
    rng::Purpose purpose = rng::Purpose::draft_accept;
    std::uint32_t position = 0;
    bool second = false;  // the second of the two numbers at the address
    std::vector<Option> options;
    std::size_t at = 0;
    [[nodiscard]] const Option& option() const { return options[at]; }
    void add(Token token, const Piece& piece);
  };

  [[nodiscard]] Choice addressed(Use use, int node, int depth) const;
  static void add_pieces(const verify::Pickable& distribution, const Piece& piece, Choice& choice);

  std::size_t columns_;
  Finals finals_;
  std::vector<Choice> made_;
  std::size_t at_ = 0;
};

}  // namespace specsim::audit
