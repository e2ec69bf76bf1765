// Rounds of a sequence whose every text position has distributions of its own, drawn when they are met.
#pragma once

#include "sim/decode/preparation.h"
#include "sim/verify/scanned_chain.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace specsim::decode {

constexpr std::uint64_t kMaxFreshSequences = std::uint64_t{1} << 31;

// The name of a text position's distributions; below 2^63, which theory's own sample of pairs leaves to it.
std::uint64_t fresh_context(std::uint64_t sequence, std::uint64_t text_position);

class FreshRound final : private verify::ChainDrafts {
 public:
  // An emitted token, its text position, and the distributions there: the target's, and what a draft token is drawn from.
  using Observer = std::function<void(Token, std::uint64_t, std::span<const double>, std::span<const double>)>;

  // `plan` must outlive it.
  FreshRound(const PreparationPlan& plan, int draft_length, bool with_bonus);
  // `observer` may be empty. The outcome is valid until the next round.
  const verify::ScannedChain::Outcome& play(std::uint64_t sequence, std::uint64_t text_position, verify::ChoiceSource& choices,
                                            const Observer& observer = {});

 private:
  [[nodiscard]] int length() const override { return draft_length_; }
  Position draft(int position, verify::ChoiceSource& choices) override;
  std::span<const double> target_at_end() override;
  void judged(int position, const Position& drafted, bool accepted, Token emitted) override;
  void bonus(Token emitted) override;

  [[nodiscard]] std::uint64_t context(int position) const {
    return fresh_context(sequence_, text_position_ + static_cast<std::uint64_t>(position));
  }

  const PreparationPlan* plan_;
  DistributionDrawer drawer_;
  int draft_length_;
  bool with_bonus_;
  verify::ScannedChain chain_;
  std::uint64_t sequence_ = 0;
  std::uint64_t text_position_ = 0;
  const Observer* observer_ = nullptr;
  std::vector<double> target_;
  std::vector<double> draft_model_;
  std::vector<double> drafted_;
  math::ScanSums sums_;
};

}  // namespace specsim::decode
