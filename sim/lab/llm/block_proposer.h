// Runs a drafter of the simulator (sim/rounds/draft) on real models: the same trees and choices, with the models' distributions.
#pragma once

#include "sim/lab/llm/proposer.h"

#include <memory>
#include <vector>

namespace specsim::llm {

// Most tokens that a pass of either model adds after the text for one of its blocks.
std::size_t room_of(const draft::BlockDrafter& block);

class BlockProposer final : public Proposer {
 public:
  // `draft`: nullptr for a drafter that reads the text alone. Lookahead's window goes through `target`, in a separate pass. Each
  // level of a tree is a pass of the draft over that level's nodes. All arguments must outlive this object.
  BlockProposer(const draft::BlockDrafter& block, DistributionSource& target, DistributionSource* draft)
      : block_(block), target_(target), draft_(draft) {}
  [[nodiscard]] std::size_t capacity() const override { return draft_ != nullptr ? draft_->capacity() : target_.capacity(); }
  [[nodiscard]] std::size_t room(int draft_length) const override;
  void start(std::size_t sequence, std::span<const Token> prompt) override;
  void propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
               std::vector<Proposal>& proposals) override;
  void settle(std::size_t sequence, std::size_t length) override;

 private:
  const draft::BlockDrafter& block_;
  DistributionSource& target_;
  DistributionSource* draft_;
  std::vector<std::unique_ptr<draft::BlockDrafter::Memory>> memories_;  // [sequence]
};

}  // namespace specsim::llm
