#include "sim/rounds/decode/lane_rounds.h"

#include "sim/foundation/rng/address.h"

#include <algorithm>
#include <utility>

namespace specsim::decode {

void LaneDraws::draw(const math::RatioTable& distributions, std::uint32_t count, Token* tokens) {
  if (!wide::available()) {
    for (std::uint32_t i = 0; i < count; ++i) tokens[i] = distributions.pick_draft(bits_[i]);
    return;
  }
  const std::uint64_t* const alias = distributions.draft_alias();
  wide::columns(bits_.data(), count, distributions.vocab(), column_.data(), rest_.data());
  for (std::uint32_t i = 0; i < count; ++i) entry_[i] = alias[column_[i]];
  wide::tokens(entry_.data(), column_.data(), rest_.data(), count, column_.data());
  for (std::uint32_t i = 0; i < count; ++i) tokens[i] = static_cast<Token>(column_[i]);
}

LaneRounds::LaneRounds(const Prepared& prepared, std::uint32_t longest, const ChunkPlan& chunk, BitSource& random_bits)
    : prepared_(&prepared),
      tables_(&*prepared.blocks),
      longest_(longest),
      chunk_(chunk),
      random_bits_(&random_bits),
      end_of_(longest + 1),
      pairs_((kPairBins + 1) * static_cast<std::size_t>(prepared.class_count)),
      rounds_of_(longest + 1),
      whole_of_(longest + 1) {
  const auto classes = static_cast<std::size_t>(prepared.class_count);
  for (std::size_t kind = 0; kind < classes; ++kind)
    row_after_.push_back(static_cast<std::uint32_t>(prepared.bin_of_class[kind] * classes));
  row_.fill(static_cast<std::uint32_t>(kPairBins * classes));  // first tokens have no previous one; this row is dropped
}

void LaneRounds::draw_final_tokens(const Verdicts& verdicts, std::uint32_t round, std::uint32_t live) {
  std::fill(end_of_.begin(), end_of_.end(), 0U);
  for (std::uint32_t lane = 0; lane < live; ++lane) ++end_of_[verdicts.accepted[lane]];
  for (std::uint32_t accepted = 0, sum = 0; accepted <= longest_; ++accepted) {
    rounds_of_[accepted] += end_of_[accepted];
    sum += std::exchange(end_of_[accepted], sum);
  }
  for (std::uint32_t lane = 0; lane < live; ++lane) by_accepted_[end_of_[verdicts.accepted[lane]]++] = lane;
  for (std::uint32_t accepted = 0, begin = 0; accepted <= longest_; begin = end_of_[accepted++]) {
    const std::uint32_t size = end_of_[accepted] - begin;
    if (size == 0) continue;
    const std::uint32_t* const lanes = by_accepted_.data() + begin;
    random_bits_->batch(rng::Purpose::final_token, accepted, round, chunk_.first_sequence, lanes, size, final_bits_.data(),
                        unused_.data());
    const math::RatioTable& distributions = tables_->at(0, static_cast<int>(accepted)).distributions;
    Token* const token = verdicts.path + std::size_t{accepted} * kLanes;
    for (std::uint32_t i = 0; i < size; ++i) {
      const math::Residual& distribution = verdicts.final_distribution[lanes[i]];
      token[lanes[i]] = distribution.c > 0.0 && distribution.mass > 0.0
                            ? distributions.pick(distribution, rng::to_unit(final_bits_[i]))
                            : distributions.pick_target(final_bits_[i]);
    }
  }
}

void LaneRounds::count(const Verdicts& verdicts, std::uint32_t live) {
  const std::uint16_t* const class_of = tables_->classes(0);
  for (std::uint32_t depth = 0; depth <= longest_; ++depth) {
    const Token* const token = verdicts.path + std::size_t{depth} * kLanes;
    for (std::uint32_t i = depth == 0 ? 0 : end_of_[depth - 1]; i < live; ++i) {  // those that accepted at least as many
      const std::uint32_t lane = by_accepted_[i];
      const std::uint16_t kind = class_of[token[lane]];
      ++pairs_[row_[lane] + kind];
      row_[lane] = row_after_[kind];
    }
  }
  for (std::uint32_t lane = 0; lane < live; ++lane) {
    emitted_[lane] += verdicts.accepted[lane] + 1;
    full_[lane] += verdicts.whole[lane];
    longest_rounds_[lane] += verdicts.accepted[lane] == longest_ ? 1 : 0;
    whole_of_[verdicts.accepted[lane]] += verdicts.whole[lane];
  }
}

void LaneRounds::add_to(Counts& counts, std::size_t nodes) const {
  for (std::size_t accepted = 0; accepted <= longest_; ++accepted) {
    const std::uint64_t rounds = rounds_of_[accepted];
    counts.accepted_distribution[accepted] += rounds;
    for (std::size_t depth = 0; depth < accepted; ++depth) {
      counts.reached[depth] += rounds;
      counts.accepted[depth] += rounds;
    }
    if (accepted < longest_) counts.reached[accepted] += rounds - whole_of_[accepted];
  }
  counts.add_neighbours(pairs_, prepared_->bin_of_class);
  for (std::uint32_t lane = 0; lane < chunk_.sequences(); ++lane) {
    const std::uint64_t number = chunk_.first_sequence + lane;
    counts.add_drafted(number, nodes, chunk_.rounds_in(lane));
    counts.add_group({.number = number,
                      .rounds = chunk_.rounds_in(lane),
                      .full = full_[lane],
                      .longest = longest_rounds_[lane],
                      .emitted = emitted_[lane]},
                     true);
  }
}

}  // namespace specsim::decode
