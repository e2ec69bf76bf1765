#include "sim/rounds/decode/simulator.h"

#include "sim/foundation/base/check.h"
#include "sim/foundation/base/overloaded.h"
#include "sim/rounds/decode/staged_rounds.h"
#include "sim/rounds/decode/wide_rounds.h"

#include <algorithm>
#include <utility>

namespace specsim::decode {

Simulator::Simulator(const PreparationPlan& plan, const Prepared& prepared, rng::Key draw_key, int draft_length,
                     std::uint32_t sequence_rounds, Bonus bonus)
    : plan_(plan),
      prepared_(&prepared),
      draw_key_(draw_key),
      draft_length_(draft_length),
      sequence_rounds_(sequence_rounds),
      bonus_(bonus) {
  SPECSIM_CHECK(bonus == Bonus::emitted || draft_length >= 1, "draft_length {} without a bonus token", draft_length);
}

Counts Simulator::empty_counts() const {
  const auto [nodes, passes] =
      std::visit(Overloaded{[](const PositionJudging& /*judging*/) { return std::pair(0, 0); },
                            [](const BlockJudging& judging) {
                              return std::pair(judging.drafter->shape().nodes, draft::counted_passes(*judging.drafter));
                            }},
                 plan_.judging);
  return {draft_length_, prepared_->strata, prepared_->class_count, nodes, passes};
}

std::uint64_t Simulator::chunk_size() const {
  const families::ContextShape& shape = plan_.contexts->process->shape();
  if (shape.contexts == 0) return sequence_rounds_;  // fresh distributions cost a thousand times as much: one sequence
  return RequestEnds(shape, sequence_rounds_, static_cast<std::uint32_t>(draft_length_)).any()
             ? kLanes
             : std::uint64_t{kLanes} * sequence_rounds_;
}

void Simulator::run(std::uint64_t index, std::uint64_t total, Counts& counts, RoundSink* sink) const {
  const std::uint64_t size = chunk_size();
  SPECSIM_CHECK(index * size < total, "chunk {} of {} rounds", index, total);
  const bool fresh = plan_.contexts->process->shape().contexts == 0;
  const ChunkPlan chunk{fresh ? index : index * kLanes, std::min(size, total - index * size), sequence_rounds_};
  PhiloxBits random_bits(draw_key_);
  run_chunk(chunk, random_bits, counts, sink);
}

void Simulator::run_scripted(std::uint64_t rounds, BitSource& random_bits, Counts& counts, RoundSink* sink) const {
  run_chunk({0, rounds, static_cast<std::uint32_t>(rounds)}, random_bits, counts, sink);
}

void Simulator::run_chunk(const ChunkPlan& chunk, BitSource& random_bits, Counts& counts, RoundSink* sink) const {
  const bool fresh = plan_.contexts->process->shape().contexts == 0;
  std::visit(Overloaded{[&](const PositionJudging& judging) {
                          if (fresh) return run_fresh(chunk, random_bits, counts, sink);
                          run_prepared(judging, chunk, random_bits, counts, sink);
                        },
                        [&](const BlockJudging& judging) {
                          if (fresh) return run_fresh_blocks(judging, chunk, random_bits, counts, sink);
                          if (sink == nullptr) {
                            if (const verify::ChainRule* rule = chain_rule(judging))
                              return run_chains(*rule, chunk, random_bits, counts);
                            if (const verify::SiblingRule* rule = sibling_rule(judging))
                              return run_trees(*rule, *judging.drafter, chunk, random_bits, counts);
                          }
                          run_blocks(judging, chunk, random_bits, counts, sink);
                        }},
             plan_.judging);
}

bool Simulator::judges_side_by_side(const BlockJudging& judging) const {
  const families::ContextShape& contexts = plan_.contexts->process->shape();
  const tokens::Tree* const tree = judging.drafter->tree();
  return bonus_ == Bonus::emitted && judging.policy == nullptr && contexts.contexts == 1 && !contexts.ends() && tree != nullptr &&
         tree->drafted() > 0 && tree->height() == draft_length_ && draft::counted_passes(*judging.drafter) == 0;
}

void Simulator::run_prepared(const PositionJudging& judging, const ChunkPlan& chunk, BitSource& random_bits, Counts& counts,
                             RoundSink* sink) const {
  const RoundSetup setup{.tables = &*prepared_->tables,
                         .process = plan_.contexts->process.get(),
                         .key = draw_key_,
                         .draft_length = static_cast<std::uint32_t>(draft_length_),
                         .matches = judging.rule->matches(),
                         .classes = prepared_->class_count,
                         .bin_of_class = prepared_->bin_of_class.data(),
                         .stratum = prepared_->stratum.empty() ? nullptr : prepared_->stratum.data()};
  if (bonus_ == Bonus::none) return run_prepared_without_bonus(setup, chunk, random_bits, counts, sink);
  if (sink == nullptr && runs_wide(setup, chunk)) return run_wide(setup, chunk, random_bits, counts);
  const bool several = plan_.contexts->process->shape().contexts > 1;
  if (sink != nullptr)
    several ? run_staged<ShippedBehaviour, true, true>(setup, chunk, random_bits, counts, sink)
            : run_staged<ShippedBehaviour, false, true>(setup, chunk, random_bits, counts, sink);
  else
    several ? run_staged<ShippedBehaviour, true, false>(setup, chunk, random_bits, counts, nullptr)
            : run_staged<ShippedBehaviour, false, false>(setup, chunk, random_bits, counts, nullptr);
}

}  // namespace specsim::decode
