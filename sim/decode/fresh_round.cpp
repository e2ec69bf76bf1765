#include "sim/decode/fresh_round.h"

#include "sim/base/check.h"

namespace specsim::decode {

std::uint64_t fresh_context(std::uint64_t sequence, std::uint64_t text_position) {
  SPECSIM_CHECK(sequence < kMaxFreshSequences && text_position < std::uint64_t{1} << 32, "sequence {}, position {}", sequence,
                text_position);
  return sequence << 32 | text_position;
}

FreshRound::FreshRound(const PreparationPlan& plan, int draft_length, bool with_bonus)
    : plan_(&plan), drawer_(plan), draft_length_(draft_length), with_bonus_(with_bonus) {}

const verify::ScannedChain::Outcome& FreshRound::play(std::uint64_t sequence, std::uint64_t text_position,
                                                      verify::ChoiceSource& choices, const Observer& observer) {
  sequence_ = sequence;
  text_position_ = text_position;
  observer_ = observer ? &observer : nullptr;
  return chain_.play(*plan_->rule, *this, choices, with_bonus_);
}

verify::ChainDrafts::Position FreshRound::draft(int position, verify::ChoiceSource& choices) {
  drawer_.target(0, context(position), target_);
  drawer_.draft(0, context(position), static_cast<std::size_t>(position), target_, draft_model_, drafted_);
  sums_.sum(drafted_);
  const Token token =
      choices.pick(verify::ChoiceSource::Use::token, position + 1, position + 1, verify::ScannedPick(sums_, drafted_));
  return {{target_, drafted_, draft_model_}, token};
}

std::span<const double> FreshRound::target_at_end() {
  drawer_.target(0, context(draft_length_), target_);
  return target_;
}

void FreshRound::judged(int position, const Position& drafted, bool /*accepted*/, Token emitted) {
  if (observer_ != nullptr)
    (*observer_)(emitted, text_position_ + static_cast<std::uint64_t>(position), drafted.distributions.target,
                 drafted.distributions.drafted);
}

void FreshRound::bonus(Token emitted) {
  if (observer_ == nullptr) return;
  drawer_.draft(0, context(draft_length_), 0, target_, draft_model_, drafted_);
  (*observer_)(emitted, text_position_ + static_cast<std::uint64_t>(draft_length_), target_, drafted_);
}

}  // namespace specsim::decode
