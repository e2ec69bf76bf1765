#include "sim/decode/random_bits.h"
#include "sim/decode/simulator.h"
#include "sim/decode/wide_steps.h"

#include <algorithm>
#include <array>
#include <utility>

namespace specsim::decode {

const verify::ChainRule* Simulator::chain_rule() const {
  const BlockJudging& judging = *plan_.blocks();
  const draft::BlockDrafter::Shape& shape = judging.drafter->shape();
  const families::ContextShape& contexts = plan_.contexts->process->shape();
  const bool chain = judging.drafter->tree() != nullptr && shape.nodes == draft_length_ && draft_length_ > 0 &&
                     shape.siblings == tokens::Siblings::independent && judging.policy == nullptr;
  if (!chain || contexts.contexts != 1 || contexts.ends()) return nullptr;
  return dynamic_cast<const verify::ChainRule*>(judging.rule);
}

// All sequences of the chunk in lockstep, stage by stage: see staged_rounds.h, whose rounds end at the first rejection, where
// these draw every token first.
void Simulator::run_chains(const verify::ChainRule& rule, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts) const {
  static_assert(verify::ChainLanes::kStride == kLanes);
  const BlockTables& tables = *prepared_->blocks;
  const auto length = static_cast<std::uint32_t>(draft_length_);
  const std::uint16_t* const class_of = tables.classes(0);
  const auto classes = static_cast<std::size_t>(prepared_->class_count);
  // Tokens are counted by (bin of the token before, class); a lane remembers where the row of its last token's bin begins.
  std::vector<std::uint64_t> pairs((kPairBins + 1) * classes);
  std::array<std::uint32_t, kLanes> row;
  row.fill(static_cast<std::uint32_t>(kPairBins * classes));  // before the first: one that is dropped
  std::vector<std::uint32_t> row_after(classes);
  for (std::size_t kind = 0; kind < classes; ++kind)
    row_after[kind] = static_cast<std::uint32_t>(prepared_->bin_of_class[kind] * classes);
  verify::ChainLanes chains;
  for (std::uint32_t depth = 0; depth <= length; ++depth)
    chains.distributions.push_back(&tables.at(0, static_cast<int>(depth)).distributions);
  chains.tokens.resize(std::size_t{length + 1} * kLanes);  // room for the final one
  chains.random_bits.resize(std::size_t{length} * kLanes);

  constexpr std::size_t kPadded = kLanes + wide::kSlack;
  std::array<std::uint64_t, kPadded> draw_bits{};
  std::array<std::uint64_t, kPadded> column;
  std::array<std::uint64_t, kPadded> rest;
  std::array<std::uint64_t, kPadded> entry{};
  std::array<std::uint64_t, kLanes> unused;
  std::array<std::uint32_t, kLanes> by_accepted;
  std::array<std::uint64_t, kLanes> emitted{};
  std::array<std::uint64_t, kLanes> full{};
  std::vector<std::uint64_t> rounds_of(length + 1);  // [accepted]
  std::vector<std::uint32_t> end_of(length + 1);     // [accepted]: in by_accepted

  // All sequences have equally many rounds but the last, which may have fewer.
  const auto rounds_in = [&](std::uint64_t sequence) {
    const std::uint64_t before = sequence * chunk.sequence_rounds;
    return before < chunk.rounds ? std::min<std::uint64_t>(chunk.rounds - before, chunk.sequence_rounds) : 0;
  };
  const auto sequences = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(kLanes, (chunk.rounds + chunk.sequence_rounds - 1) / chunk.sequence_rounds));
  std::uint32_t live = sequences;
  for (std::uint32_t round = 0;; ++round) {
    while (live > 0 && rounds_in(live - 1) <= round) --live;
    if (live == 0) break;
    chains.lanes = live;
    for (std::uint32_t position = 0; position < length; ++position) {
      const math::RatioTable& distributions = *chains.distributions[position];
      Token* const token = chains.tokens.data() + std::size_t{position} * kLanes;
      random_bits.draft_accept(round, position, chunk.first_sequence, nullptr, live, draw_bits.data(),
                               chains.random_bits.data() + std::size_t{position} * kLanes);
      if (!wide::available()) {
        for (std::uint32_t lane = 0; lane < live; ++lane) token[lane] = distributions.pick_draft(draw_bits[lane]);
        continue;
      }
      const std::uint64_t* const alias = distributions.draft_alias();
      wide::columns(draw_bits.data(), live, distributions.vocab(), column.data(), rest.data());
      for (std::uint32_t lane = 0; lane < live; ++lane) entry[lane] = alias[column[lane]];
      wide::tokens(entry.data(), column.data(), rest.data(), live, column.data());
      for (std::uint32_t lane = 0; lane < live; ++lane) token[lane] = static_cast<Token>(column[lane]);
    }
    rule.verify_lanes(chains);

    std::fill(end_of.begin(), end_of.end(), 0);
    for (std::uint32_t lane = 0; lane < live; ++lane) ++end_of[chains.accepted[lane]];
    for (std::uint32_t accepted = 0, sum = 0; accepted <= length; ++accepted) {
      rounds_of[accepted] += end_of[accepted];
      sum += std::exchange(end_of[accepted], sum);
    }
    for (std::uint32_t lane = 0; lane < live; ++lane) by_accepted[end_of[chains.accepted[lane]]++] = lane;
    for (std::uint32_t accepted = 0, begin = 0; accepted <= length; begin = end_of[accepted++]) {
      const std::uint32_t count = end_of[accepted] - begin;
      if (count == 0) continue;
      const std::uint32_t* const lanes = by_accepted.data() + begin;
      random_bits.batch(rng::Purpose::final_token, accepted, round, chunk.first_sequence, lanes, count, draw_bits.data(),
                        unused.data());
      const math::RatioTable& distributions = *chains.distributions[accepted];
      for (std::uint32_t i = 0; i < count; ++i) {
        const math::Residual& distribution = chains.final_distribution[lanes[i]];
        chains.tokens[std::size_t{accepted} * kLanes + lanes[i]] =
            distribution.c > 0.0 && distribution.mass > 0.0 ? distributions.pick(distribution, rng::to_unit(draw_bits[i]))
                                                            : distributions.pick_target(draw_bits[i]);
      }
    }

    for (std::uint32_t position = 0; position <= length; ++position) {
      const Token* const token = chains.tokens.data() + std::size_t{position} * kLanes;
      for (std::uint32_t i = position == 0 ? 0 : end_of[position - 1]; i < live; ++i) {  // those that accepted as many, or more
        const std::uint32_t lane = by_accepted[i];
        const std::uint16_t kind = class_of[token[lane]];
        ++pairs[row[lane] + kind];
        row[lane] = row_after[kind];
      }
    }
    for (std::uint32_t lane = 0; lane < live; ++lane) {
      emitted[lane] += chains.accepted[lane] + 1;
      full[lane] += chains.accepted[lane] == length ? 1 : 0;
    }
  }

  for (std::uint32_t accepted = 0; accepted <= length; ++accepted) {
    const std::uint64_t rounds = rounds_of[accepted];
    counts.accepted_distribution[accepted] += rounds;
    counts.drafted[length] += rounds;
    for (std::uint32_t position = 0; position < length; ++position) {
      counts.reached[position] += accepted >= position ? rounds : 0;
      counts.accepted[position] += accepted > position ? rounds : 0;
    }
  }
  counts.add_neighbours(pairs, prepared_->bin_of_class);
  for (std::uint32_t lane = 0; lane < sequences; ++lane) counts.add_sequence(rounds_in(lane), full[lane], emitted[lane], true);
}

}  // namespace specsim::decode
