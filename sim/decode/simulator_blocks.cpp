#include "sim/base/check.h"
#include "sim/decode/simulator.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace specsim::decode {

namespace {

struct Sequence {
  std::uint32_t context = 0;
  std::uint32_t text_position = 0;
  std::uint32_t previous_bin = kPairBins;  // the last emitted token's; kPairBins before the first
  std::uint64_t rounds = 0;
  std::uint64_t full = 0;
  std::uint64_t emitted = 0;
  std::uint64_t rounds_left = 0;  // requests: 1 until they are done
  std::uint64_t tokens = 0;       // how many a request emits
  draft::LengthPolicy::Memory memory;
  std::vector<Token> text;  // prompt and text so far, where the drafter reads them
  std::unique_ptr<draft::BlockDrafter::Memory> drafter_memory;
};

// Sequences that have one draft length, chosen for all of them.
struct Batch {
  draft::LengthPolicy::Memory memory;
  int drafted = 0;
  std::vector<int> accepted;  // what each sequence that is not done accepted in this round
};

// Counts a round and its tokens: how many were accepted and reached, and what was emitted, by class.
struct RoundCounter {
  const Prepared& prepared;
  std::size_t distribution_size;  // draft_length + 1
  bool one_context;
  Counts& counts;

  void add(const BlockRound::Outcome& outcome, Sequence& own) const {
    const bool one_stratum = prepared.stratum.empty();
    const auto classes = static_cast<std::size_t>(prepared.class_count);
    const std::vector<Token>& emitted = outcome.emitted;
    const std::size_t stratum = one_stratum ? 0 : prepared.stratum[own.context];
    ++counts.accepted_distribution[stratum * distribution_size + outcome.accepted];
    for (std::size_t i = 0; i < emitted.size(); ++i) {
      if (i < outcome.accepted) ++counts.accepted[i];
      if (i < outcome.accepted || !outcome.whole) ++counts.reached[i];
      const std::uint16_t kind = prepared.blocks->classes(one_context ? 0 : outcome.contexts[i])[emitted[i]];
      if (one_stratum) {
        ++counts.output[kind];
        const std::uint8_t bin = prepared.bin_of_class[kind];
        if (own.previous_bin < kPairBins) ++counts.pairs[own.previous_bin * kPairBins + bin];
        own.previous_bin = bin;
      } else {
        ++counts.output[prepared.stratum[outcome.contexts[i]] * classes + kind];
      }
    }
  }
};

// Books a round that emitted so many tokens to its sequence, or to the rounds that the end of a request cut short.
void book_round(std::uint64_t emitted, bool whole, const RequestEnds& ends, Sequence& own, Counts& counts) {
  if (ends.any()) {
    const std::uint64_t room = own.tokens - own.emitted;
    if (emitted > room) {
      ++counts.cut_rounds;
      counts.cut_emitted += room;
      own.rounds_left = 0;
      return;
    }
  }
  ++own.rounds;
  own.emitted += emitted;
  own.full += whole ? 1 : 0;
  if (!ends.any())
    --own.rounds_left;
  else if (ends.done(own.tokens, own.emitted))
    own.rounds_left = 0;
}

}  // namespace

void Simulator::run_blocks(const ChunkPlan& chunk, BitSource& source, Counts& counts, RoundSink* sink) const {
  const families::ContextProcess& process = *plan_.contexts->process;
  const BlockTables& tables = *prepared_->blocks;
  const BlockJudging& judging = *plan_.blocks();
  const draft::BlockDrafter& drafter = *judging.drafter;
  const draft::LengthPolicy* const policy = judging.policy;
  const draft::BlockDrafter::Shape& shape = drafter.shape();
  const RequestEnds ends(process.shape(), chunk.sequence_rounds, static_cast<std::uint32_t>(draft_length_));
  const RoundCounter counter{*prepared_, static_cast<std::size_t>(draft_length_) + 1, process.shape().contexts == 1, counts};
  const std::span<const Token> prompt = process.prompt();
  BlockRound round(tables, process, draw_key_, drafter, policy);
  const bool chain = drafter.tree() != nullptr && drafter.tree()->is_chain();
  // Sequences that draft alike go side by side: all of the chunk, in as many batches as come closest to the size that there is.
  const int alike = policy != nullptr ? policy->sequences() : 1;
  const std::uint32_t abreast = alike > 1 ? kLanes : GroupBits::kGroup;
  const auto batch_count = static_cast<std::uint32_t>(alike > 1 ? std::max(1.0, std::round(double{kLanes} / alike)) : 0.0);
  const auto batch_of = [&](std::uint32_t lane) { return std::size_t{lane} * batch_count / kLanes; };
  std::vector<Sequence> group(abreast);
  std::vector<Batch> batches(batch_count);
  std::vector<std::uint32_t> contexts(abreast);
  std::vector<GroupBits> bits_of_group;
  bits_of_group.reserve(abreast / GroupBits::kGroup);

  std::uint64_t left = chunk.rounds;
  for (std::uint32_t first_lane = 0; first_lane < kLanes && left > 0; first_lane += abreast) {
    const std::uint64_t first_sequence = chunk.first_sequence + first_lane;
    process.start(draw_key_, first_sequence, abreast, contexts.data());
    std::uint32_t live = 0;
    for (Batch& batch : batches) batch.memory = policy->start();
    for (; live < abreast && left > 0; ++live) {
      Sequence& own = group[live];
      own = Sequence();
      own.context = contexts[live];
      own.rounds_left = ends.any() ? 1 : std::min<std::uint64_t>(left, chunk.sequence_rounds);
      left -= own.rounds_left;
      if (ends.any()) own.tokens = ends.tokens(own.context);
      if (ends.any() && ends.done(own.tokens, 0)) own.rounds_left = 0;
      own.memory = policy != nullptr ? policy->start() : draft::LengthPolicy::Memory{.length = draft_length_};
      if (shape.reads_text) own.text.assign(prompt.begin(), prompt.end());
      own.drafter_memory = drafter.start();
    }
    const std::uint32_t sequences = live;
    bits_of_group.clear();
    for (std::uint32_t lane = 0; lane < abreast; lane += GroupBits::kGroup)
      bits_of_group.emplace_back(source, first_sequence + lane);
    bool any = live > 0;
    for (std::uint32_t number = 0; any; ++number) {
      any = false;
      for (GroupBits& random_bits : bits_of_group) random_bits.begin(number);
      for (std::uint32_t lane = 0; lane < sequences; ++lane) {
        Sequence& own = group[lane];
        if (own.rounds_left == 0) continue;
        GroupBits& random_bits = bits_of_group[lane / GroupBits::kGroup];
        random_bits.set_lane(lane % GroupBits::kGroup);
        Batch* const batch = alike > 1 ? &batches[batch_of(lane)] : nullptr;
        draft::LengthPolicy::Memory& memory = batch != nullptr ? batch->memory : own.memory;
        const BlockRound::Outcome& outcome =
            round.play(*judging.rule,
                       {first_sequence + lane, own.context, own.text_position, own.text, memory.length, own.drafter_memory.get(),
                        &memory, bonus_ == Bonus::emitted},
                       random_bits);
        const std::vector<Token>& emitted = outcome.emitted;
        const std::size_t accepted = outcome.accepted;
        const bool whole = outcome.whole;
        int drafted = round.drafted();
        if (policy != nullptr) {
          const int length = chain ? drafted : std::min(memory.length, draft_length_);  // length of the longest path
          if (batch != nullptr) {
            batch->drafted = length;
            batch->accepted.push_back(static_cast<int>(accepted));
          } else {
            policy->observe(memory, length, static_cast<int>(accepted));
          }
          if (policy->remembers_tokens()) policy->observe_tokens(memory, round.draft_probabilities(), static_cast<int>(accepted));
          if (policy->foresees()) drafted = static_cast<int>(accepted);
        }

        if (!counts.drafted.empty()) ++counts.drafted[static_cast<std::size_t>(drafted)];
        if (counts.passes.any()) counts.passes.add(round.pass_rows());
        counter.add(outcome, own);
        if (sink != nullptr) {
          sink->drafted(first_lane + lane, number, static_cast<std::uint32_t>(drafted), whole);
          sink->passes(round.pass_rows());
          sink->accepted(first_lane + lane, number, static_cast<std::uint32_t>(accepted));
          sink->round(first_lane + lane, number, emitted, outcome.next_context);
        }
        own.context = outcome.next_context;
        own.text_position += static_cast<std::uint32_t>(emitted.size());
        if (shape.reads_text) own.text.insert(own.text.end(), emitted.begin(), emitted.end());
        book_round(emitted.size(), whole, ends, own, counts);
        any = any || own.rounds_left > 0;
      }
      for (Batch& batch : batches) {
        if (!batch.accepted.empty()) policy->observe_batch(batch.memory, batch.drafted, batch.accepted);
        batch.accepted.clear();
      }
    }
    for (std::uint32_t lane = 0; lane < sequences; ++lane)
      counts.add_sequence(group[lane].rounds, group[lane].full, group[lane].emitted, draft_length_ > 0);
  }
}

}  // namespace specsim::decode
