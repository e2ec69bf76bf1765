#include "sim/rounds/decode/fresh_blocks.h"

#include "sim/rounds/decode/fresh_round.h"

#include <algorithm>

namespace specsim::decode {

FreshBlocks::Positions::Positions(int positions) {
  shape_.kind = families::ContextShape::Kind::iid_fresh;
  shape_.contexts = positions + 1;  // one more than has distributions: the context after the last token
}

void FreshBlocks::Positions::start(rng::Key /*key*/, std::uint64_t /*first_sequence*/, std::size_t count,
                                   std::uint32_t* context) const {
  std::fill_n(context, count, 0U);
}

void FreshBlocks::Positions::step(rng::Key /*key*/, std::uint64_t /*first_sequence*/, const std::uint32_t* lanes,
                                  std::size_t count, const std::uint32_t* /*text_position*/, const Token* /*token*/,
                                  std::uint32_t* context) const {
  for (std::size_t i = 0; i < count; ++i) ++context[lanes[i]];
}

std::uint32_t FreshBlocks::Positions::next(std::uint32_t context, Token /*token*/) const { return context + 1; }

FreshBlocks::FreshBlocks(const PreparationPlan& plan, int positions, Rounds rounds)
    : plan_(&plan),
      drawer_(plan),
      process_(positions),
      by_place_(rounds == Rounds::from_first && !std::get<BlockJudging>(plan.judging).drafter->shape().from_root),
      targets_(static_cast<std::size_t>(positions)),
      drafted_(static_cast<std::size_t>(positions)) {}

void FreshBlocks::draw(std::uint64_t sequence, std::uint64_t first) {
  const auto depths = static_cast<std::size_t>(plan_->depths());
  const auto& judging = std::get<BlockJudging>(plan_->judging);
  tables_.emplace(plan_->vocab, static_cast<int>(targets_.size()), by_place_ ? 1 : static_cast<int>(depths), *judging.drafter,
                  *judging.rule);
  std::vector<double> draft_model;
  std::vector<double> drafted;
  std::vector<double> looked_at;
  std::vector<double> before;
  const bool joins = plan_->joins();
  // The draft distribution at position `i` of a block that began at position `start`, by depth as far as depths differ.
  const auto join = [&](std::size_t start, std::size_t i, std::size_t depth) {
    drawer_.draft(0, fresh_context(sequence, first + start), depth, targets_[start], before, drafted);
    drawer_.draft(0, fresh_context(sequence, first + i), depth, targets_[i], draft_model, drafted);
    drawer_.joined(0, before, draft_model, drafted, looked_at);
  };
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const std::uint64_t context = fresh_context(sequence, first + i);
    const std::size_t own_depth = std::min(i, depths - 1);
    drawer_.target(0, context, targets_[i]);
    for (std::size_t depth = by_place_ ? own_depth : 0; depth < (by_place_ ? own_depth + 1 : depths); ++depth) {
      if (joins && by_place_ && i > 0) {
        join(0, i, depth);
      } else {
        drawer_.draft(0, context, depth, targets_[i], draft_model, drafted);
        drawer_.looked_at(0, context, depth, targets_[i], drafted, looked_at);
      }
      tables_->add({targets_[i], drafted, draft_model, looked_at}, {}, scratch_);
      if (depth == own_depth) drafted_[i] = drafted;
    }
  }
  if (!joins || by_place_) return;
  for (std::size_t start = 0; start < targets_.size(); ++start)
    for (std::size_t i = 0; i < targets_.size(); ++i)
      for (std::size_t depth = 0; depth < depths; ++depth) {
        join(start, i, depth);
        tables_->add_joined({targets_[i], drafted, {}, looked_at}, scratch_);
      }
}

}  // namespace specsim::decode
