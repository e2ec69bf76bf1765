// A drafter of the simulator's (sim/draft) at work on real models: the same trees, the same choices, the models' laws.
#pragma once

#include "sim/llm/drafter.h"

#include <memory>
#include <vector>

namespace specsim::llm {

class BlockModelDrafter final : public Drafter {
 public:
  // `draft`: nullptr for a drafter that reads the text alone. Lookahead's window goes through `target`, in a pass of its own.
  // Each level of a tree is a pass of the draft over all levels so far, since a cache holds no unfinished tree. What is passed
  // must outlive it.
  BlockModelDrafter(const draft::BlockDrafter& block, LawSource& target, LawSource* draft, Clock clock)
      : block_(block), target_(target), draft_(draft), clock_(clock) {}
  [[nodiscard]] std::size_t capacity() const override { return draft_ != nullptr ? draft_->capacity() : target_.capacity(); }
  [[nodiscard]] std::size_t room(int draft_length) const override;
  void start(std::size_t sequence, std::span<const Token> prompt) override;
  void propose(std::span<const Text> texts, int draft_length, std::uint32_t round, rng::Key key,
               std::vector<Proposal>& proposals) override;
  void settle(std::size_t sequence, std::size_t length) override;
  [[nodiscard]] std::optional<double> first_pass_end() const override { return first_pass_end_; }

 private:
  const draft::BlockDrafter& block_;
  LawSource& target_;
  LawSource* draft_;
  Clock clock_;
  std::optional<double> first_pass_end_;
  std::vector<std::unique_ptr<draft::BlockDrafter::Memory>> memories_;  // [sequence]
};

}  // namespace specsim::llm
