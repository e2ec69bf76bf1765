#include "sim/hardware/placement/single_rounds.h"

#include "sim/foundation/base/token.h"

#include <variant>

namespace specsim::placement {

namespace {

const decode::BlockJudging& judging_of(const RoundSource& source) { return std::get<decode::BlockJudging>(source.plan.judging); }

}  // namespace

SingleRounds::SingleRounds(const RoundSource& source)
    : process_(source.plan.contexts->process.get()),
      rule_(judging_of(source).rule),
      key_(source.draw_key),
      source_(source.draw_key),
      round_(*source.prepared->blocks, *process_, key_, *judging_of(source).drafter, nullptr),
      memory_(judging_of(source).drafter->start()) {}

SingleRounds::State SingleRounds::start(std::uint64_t sequence) const {
  State state{sequence, 0, 0, 0};
  process_->start(key_, sequence, 1, &state.context);
  return state;
}

decode::GroupBits& SingleRounds::bits_of(const State& state) {
  const auto group = static_cast<std::size_t>(state.sequence / decode::GroupBits::kGroup);
  if (bits_.size() <= group) bits_.resize(group + 1);
  if (bits_[group] == nullptr)
    bits_[group] = std::make_unique<decode::GroupBits>(source_, std::uint64_t{group} * decode::GroupBits::kGroup);
  bits_[group]->begin(state.round);
  bits_[group]->set_lane(static_cast<std::uint32_t>(state.sequence % decode::GroupBits::kGroup));
  return *bits_[group];
}

decode::BlockRound::Start SingleRounds::start_of(const State& state, int longest) const {
  return {state.sequence, state.context, state.text_position, {}, longest, memory_.get(), nullptr, true};
}

void SingleRounds::draft(const State& state, std::span<draft::LengthPolicy::TokenForecast> forecasts) {
  round_.draft(start_of(state, kMaxDraftLength), bits_of(state), forecasts);
}

std::uint32_t SingleRounds::play(State& state, std::uint32_t verified) {
  const decode::BlockRound::RoundResult& outcome =
      round_.play(*rule_, start_of(state, static_cast<int>(verified)), bits_of(state));
  state.context = outcome.next_context;
  state.text_position += static_cast<std::uint32_t>(outcome.emitted.size());
  ++state.round;
  return static_cast<std::uint32_t>(outcome.accepted);
}

}  // namespace specsim::placement
