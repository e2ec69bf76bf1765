#include "sim/base/check.h"
#include "sim/decode/simulator.h"
#include "sim/rng/address.h"

#include <algorithm>
#include <array>

namespace specsim::decode {

namespace {

// Rounds of so many sequences go together: their words are drawn in one batch, which costs a quarter of drawing them singly.
constexpr std::uint32_t kGroup = 64;
constexpr std::uint32_t kWorthwhile = 12;  // of a group: fewer are drawn singly
// Only the first nodes and depths are visited so often that a batch pays.
constexpr int kBatchedNodes = 64;
constexpr int kBatchedDepths = 16;

// Addressed words of one round of a group.
class GroupWords {
 public:
  // `only`: the laws, where there is only one pair of them; nullptr elsewhere.
  GroupWords(rng::Key key, std::uint64_t first_sequence, const math::RatioTable* only)
      : key_(key), first_sequence_(first_sequence), only_(only) {}
  void begin(std::uint32_t round) {
    round_ = round;
    ++generation_;
  }
  rng::WordPair draft_accept(std::uint32_t lane, int node) { return get(nodes_, rng::Purpose::draft_accept, node - 1, lane); }
  std::uint64_t final_token(std::uint32_t lane, int depth) { return get(depths_, rng::Purpose::final_token, depth, lane).first; }
  std::uint64_t single(rng::Purpose purpose, std::uint32_t lane, int node) const { return one(purpose, node, lane).first; }

 private:
  struct Batch {
    std::uint32_t generation = 0;
    bool filled = true;            // whether there is a batch in this round, or words are drawn singly
    std::uint32_t asked = kGroup;  // in this round so far
    std::array<std::uint64_t, kGroup> first;
    std::array<std::uint64_t, kGroup> second;
  };

  rng::WordPair one(rng::Purpose purpose, int position, std::uint32_t lane) const {
    const std::uint64_t sequence = first_sequence_ + lane;
    return rng::philox_words({rng::counter_word0(purpose, static_cast<std::uint32_t>(position)), round_,
                              static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
                             key_);
  }
  template <std::size_t kSize>
  rng::WordPair get(std::array<Batch, kSize>& batches, rng::Purpose purpose, int position, std::uint32_t lane) {
    if (position >= static_cast<int>(kSize)) return one(purpose, position, lane);
    Batch& batch = batches[static_cast<std::size_t>(position)];
    const bool first_asked = batch.generation != generation_;
    if (first_asked) {
      batch.generation = generation_;
      batch.filled = batch.asked >= kWorthwhile;  // as many as in the last round that came here will be asked for
      batch.asked = 0;
    }
    ++batch.asked;
    if (!batch.filled) return one(purpose, position, lane);
    if (first_asked) {
      rng::philox_batch({.c0 = rng::counter_word0(purpose, static_cast<std::uint32_t>(position)),
                         .c1_common = round_,
                         .c1 = nullptr,
                         .c2 = static_cast<std::uint32_t>(first_sequence_),
                         .lanes = nullptr,
                         .c3 = static_cast<std::uint32_t>(first_sequence_ >> 32)},
                        key_, kGroup, batch.first.data(), batch.second.data());
      if (only_ != nullptr && purpose == rng::Purpose::draft_accept) {
        for (const std::uint64_t word : batch.first) only_->prefetch_draft(word);
        for (const std::uint64_t word : batch.first) only_->prefetch_laws(only_->pick_draft(word));
      }
    }
    return {batch.first[lane], batch.second[lane]};
  }

  rng::Key key_;
  std::uint64_t first_sequence_;
  const math::RatioTable* only_;
  std::uint32_t round_ = 0;
  std::uint32_t generation_ = 0;
  std::array<Batch, kBatchedNodes> nodes_;
  std::array<Batch, kBatchedDepths> depths_;
};

class AddressedChoices final : public ChoiceSource {
 public:
  explicit AddressedChoices(GroupWords& words) : words_(&words) {}
  void set_lane(std::uint32_t lane) { lane_ = lane; }
  Token pick(Use use, int node, int depth, const verify::Pickable& law) override {
    switch (use) {
      case Use::token:
        return law.pick(words_->draft_accept(lane_, node).first);
      case Use::redraft:
        return law.pick(words_->single(rng::Purpose::redraft, lane_, node));
      case Use::child:
        return law.pick(words_->single(rng::Purpose::child, lane_, node));
      case Use::final_token:
        break;
    }
    return law.pick(words_->final_token(lane_, depth));
  }
  bool accept(int node, verify::Odds odds) override {
    return verify::accepts(rng::to_unit(words_->draft_accept(lane_, node).second), odds);
  }

 private:
  GroupWords* words_;
  std::uint32_t lane_ = 0;
};

struct Sequence {
  std::uint32_t context = 0;
  std::uint32_t text_position = 0;
  std::uint32_t previous_bin = kPairBins;  // of the last emitted token; kPairBins before the first
  std::uint64_t rounds = 0;
  std::uint64_t full = 0;
  std::uint64_t emitted = 0;
  std::uint64_t rounds_left = 0;  // requests: 1 until they are done
  draft::LengthPolicy::Memory memory;
  std::vector<Token> text;  // for drafters that read it
};

}  // namespace

void Simulator::run_blocks(const ChunkPlan& chunk, Counts& counts, RoundSink* sink) const {
  const families::ContextProcess& process = *plan_.contexts->process;
  const BlockTables& tables = *prepared_->blocks;
  const draft::BlockDrafter::Shape& shape = plan_.drafter->shape();
  const std::uint64_t request_tokens = process.shape().request_tokens;
  const auto law_size = static_cast<std::size_t>(draft_length_) + 1;
  const auto classes = static_cast<std::size_t>(prepared_->class_count);
  const bool one_stratum = prepared_->stratum.empty();
  const math::RatioTable* const only = process.shape().contexts == 1 && plan_.depths() == 1 ? &tables.at(0, 0).laws : nullptr;
  const std::span<const Token> prompt = process.prompt();
  BlockRound round(tables, process, draw_key_, *plan_.drafter, plan_.policy);

  std::uint64_t left = chunk.rounds;
  for (std::uint32_t first_lane = 0; first_lane < kLanes && left > 0; first_lane += kGroup) {
    const std::uint64_t first_sequence = chunk.first_sequence + first_lane;
    std::array<Sequence, kGroup> group;
    std::array<std::uint32_t, kGroup> contexts;
    process.start(draw_key_, first_sequence, kGroup, contexts.data());
    std::uint32_t live = 0;
    for (; live < kGroup && left > 0; ++live) {
      Sequence& own = group[live];
      own.context = contexts[live];
      own.rounds_left = request_tokens > 0 ? 1 : std::min<std::uint64_t>(left, chunk.sequence_rounds);
      left -= own.rounds_left;
      own.memory = plan_.policy != nullptr ? plan_.policy->start() : draft::LengthPolicy::Memory{0.0, draft_length_};
      if (shape.reads_text) own.text.assign(prompt.begin(), prompt.end());
    }
    const std::uint32_t sequences = live;
    GroupWords words(draw_key_, first_sequence, only);
    AddressedChoices choices(words);
    bool any = live > 0;
    for (std::uint32_t number = 0; any; ++number) {
      any = false;
      words.begin(number);
      for (std::uint32_t lane = 0; lane < sequences; ++lane) {
        Sequence& own = group[lane];
        if (own.rounds_left == 0) continue;
        choices.set_lane(lane);
        const BlockRound::Outcome& outcome = round.play(
            *plan_.block_rule, {first_sequence + lane, own.context, own.text_position, own.text, own.memory.length}, choices);
        const std::vector<Token>& emitted = outcome.emitted;
        const std::size_t accepted = emitted.size() - 1;
        const bool whole = outcome.whole;
        int drafted = round.drafted();
        if (plan_.policy != nullptr) {
          plan_.policy->observe(own.memory, drafted, static_cast<int>(accepted));
          if (plan_.policy->foresees()) drafted = static_cast<int>(accepted);
        }

        const std::size_t stratum = one_stratum ? 0 : prepared_->stratum[own.context];
        ++counts.accepted_law[stratum * law_size + accepted];
        if (!counts.drafted.empty()) ++counts.drafted[static_cast<std::size_t>(drafted)];
        for (std::size_t i = 0; i < accepted; ++i) {
          ++counts.reached[i];
          ++counts.accepted[i];
        }
        if (!whole) ++counts.reached[accepted];
        for (std::size_t i = 0; i <= accepted; ++i) {
          const std::uint16_t kind = tables.classes(outcome.contexts[i])[emitted[i]];
          if (one_stratum) {
            ++counts.output[kind];
            const std::uint8_t bin = prepared_->bin_of_class[kind];
            if (own.previous_bin < kPairBins) ++counts.pairs[own.previous_bin * kPairBins + bin];
            own.previous_bin = bin;
          } else {
            ++counts.output[prepared_->stratum[outcome.contexts[i]] * classes + kind];
          }
        }
        if (sink != nullptr) {
          sink->accepted(first_lane + lane, number, static_cast<std::uint32_t>(accepted));
          sink->round(first_lane + lane, number, emitted, outcome.contexts.back());
        }
        own.context = outcome.contexts.back();
        own.text_position += static_cast<std::uint32_t>(emitted.size());
        if (shape.reads_text) own.text.insert(own.text.end(), emitted.begin(), emitted.end());
        if (request_tokens == 0) {
          ++own.rounds;
          own.emitted += emitted.size();
          own.full += whole ? 1 : 0;
          --own.rounds_left;
        } else {
          const std::uint64_t room = request_tokens - own.emitted;
          if (emitted.size() > room) {
            ++counts.cut_rounds;
            counts.cut_emitted += room;
            own.rounds_left = 0;
          } else {
            ++own.rounds;
            own.emitted += emitted.size();
            own.full += whole ? 1 : 0;
            if (emitted.size() == room) own.rounds_left = 0;
          }
        }
        any = any || own.rounds_left > 0;
      }
    }
    for (std::uint32_t lane = 0; lane < sequences; ++lane)
      counts.add_sequence(group[lane].rounds, group[lane].full, group[lane].emitted, draft_length_ > 0);
  }
}

}  // namespace specsim::decode
