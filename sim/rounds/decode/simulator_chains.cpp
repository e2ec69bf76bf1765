#include "sim/rounds/decode/lane_rounds.h"
#include "sim/rounds/decode/simulator.h"

#include <array>

namespace specsim::decode {

const verify::ChainRule* Simulator::chain_rule(const BlockJudging& judging) const {
  return judges_side_by_side(judging) && judging.drafter->shape().nodes == draft_length_ &&
                 judging.drafter->shape().siblings == tokens::Siblings::independent
             ? dynamic_cast<const verify::ChainRule*>(judging.rule)
             : nullptr;
}

// All sequences of the chunk in lockstep, stage by stage. Rounds in staged_rounds.h end at the first rejection; here every token
// is drawn first.
void Simulator::run_chains(const verify::ChainRule& rule, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts) const {
  static_assert(verify::ChainLanes::kStride == kLanes);
  const auto length = static_cast<std::uint32_t>(draft_length_);
  verify::ChainLanes chains;
  for (std::uint32_t depth = 0; depth <= length; ++depth)
    chains.distributions.push_back(&prepared_->blocks->at(0, static_cast<int>(depth)).distributions);
  chains.tokens.resize(std::size_t{length + 1} * kLanes);  // room for the final one
  chains.random_bits.resize(std::size_t{length} * kLanes);
  std::array<std::uint32_t, kLanes> whole;
  LaneDraws draws;
  LaneRounds rounds(*prepared_, length, chunk, random_bits);
  rounds.run({chains.tokens.data(), chains.accepted.data(), whole.data(), chains.final_distribution.data()},
             [&](std::uint32_t round, std::uint32_t live) {
               chains.lanes = live;
               for (std::uint32_t position = 0; position < length; ++position) {
                 random_bits.draft_accept(round, position, chunk.first_sequence, nullptr, live, draws.bits(),
                                          chains.random_bits.data() + std::size_t{position} * kLanes);
                 draws.draw(*chains.distributions[position], live, chains.tokens.data() + std::size_t{position} * kLanes);
               }
               rule.verify_lanes(chains);
               for (std::uint32_t lane = 0; lane < live; ++lane) whole[lane] = chains.accepted[lane] == length ? 1 : 0;
             });
  rounds.add_to(counts, length);
}

}  // namespace specsim::decode
