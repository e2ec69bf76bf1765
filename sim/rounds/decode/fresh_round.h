// Rounds of a sequence in which every text position has its own distributions, drawn when they are needed.
#pragma once

#include "sim/rounds/decode/preparation.h"
#include "sim/rounds/verify/positions_in_turn.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace specsim::decode {

constexpr std::uint64_t kMaxFreshSequences = std::uint64_t{1} << 31;

// The number that identifies a text position's distributions. It is below 2^63; theory's own sample of pairs uses the numbers
// above.
std::uint64_t fresh_context(std::uint64_t sequence, std::uint64_t text_position);

class FreshRound final : private verify::Block {
 public:
  // An emitted token, its text position, and the distributions there: the target's, and the one from which a draft token is
  // drawn.
  using Observer = std::function<void(Token, std::uint64_t, std::span<const double>, std::span<const double>)>;
  struct RoundResult {
    std::vector<Token> emitted;  // the accepted draft tokens and the final one, if there is one
    int accepted = 0;
    bool whole = false;  // every draft token was accepted
  };

  // `plan` must outlive it. `with_bonus`: full acceptance adds a target token.
  FreshRound(const PreparationPlan& plan, int draft_length, bool with_bonus);
  // `observer` may be empty. The outcome is valid until the next round.
  const RoundResult& play(std::uint64_t sequence, std::uint64_t text_position, verify::ChoiceSource& choices,
                          const Observer& observer = {});

 private:
  verify::PositionDistributions numbers(int node) override;
  void judged(int node, const verify::PositionDistributions& distributions, bool accepted, Token emitted) override;
  Token choose(int node, const verify::Pickable& distribution) override;
  Token pick(int node, const verify::Pickable& distribution) override;
  void draw(int node, Node& own) override;
  void place(int node, Node& own) override;
  bool stops(int node) override;
  bool decide(int node, verify::Odds odds) override;

  [[nodiscard]] int draft_length() const { return chain_.drafted(); }
  [[nodiscard]] std::uint64_t context(int node) const {
    return fresh_context(sequence_, text_position_ + static_cast<std::uint64_t>(node));
  }

  DistributionDrawer drawer_;
  tokens::Tree chain_;
  bool with_bonus_;
  verify::PositionsInTurn rule_;
  RoundResult outcome_;
  std::uint64_t sequence_ = 0;
  std::uint64_t text_position_ = 0;
  verify::ChoiceSource* choices_ = nullptr;
  const Observer* observer_ = nullptr;
  int numbered_ = -1;  // node after which the distributions below apply; -1: none of this round
  std::vector<double> target_;
  std::vector<double> draft_model_;
  std::vector<double> drafted_;
  math::ScanSums sums_;
};

}  // namespace specsim::decode
