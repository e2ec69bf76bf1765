#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/simulator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace specsim::decode {

namespace {

struct Sequence {
  std::uint32_t context = 0;
  std::uint32_t text_position = 0;
  std::uint32_t previous_bin = kPairBins;  // bin of the last emitted token; kPairBins before the first
  std::uint64_t rounds = 0;
  std::uint64_t full = 0;
  std::uint64_t longest = 0;
  std::uint64_t emitted = 0;
  std::uint64_t rounds_left = 0;  // requests: 1 until they are done
  std::uint64_t tokens = 0;       // number of tokens that a request emits
  draft::LengthPolicy::Memory memory;
  std::vector<Token> text;  // prompt and text so far, if the drafter reads them
  std::unique_ptr<draft::BlockDrafter::Memory> drafter_memory;
};

// Sequences that share one draft length.
struct Batch {
  draft::LengthPolicy::Memory memory;
  int drafted = 0;
  std::vector<int> accepted;     // accepted tokens in this round of each sequence that is not done
  std::uint32_t first_lane = 0;  // index in the group of its first sequence
  // For a policy that shares rows: the chains of those sequences, and how much of each is verified.
  std::vector<draft::LengthPolicy::Chain> chains;
  std::vector<int> verified;
};

// Counts a round and its tokens: how many were accepted and reached, and the emitted tokens by class.
struct RoundCounter {
  const Prepared& prepared;
  std::size_t distribution_size;  // draft_length + 1
  bool one_context;
  Counts& counts;

  void add(const BlockRound::RoundResult& outcome, Sequence& own) const {
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

// Counts a round's tokens for its sequence, or among the rounds that the end of a request cut short.
void book_round(const BlockRound::RoundResult& outcome, std::size_t longest, const RequestEnds& ends, Sequence& own,
                Counts& counts) {
  const std::uint64_t emitted = outcome.emitted.size();
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
  own.full += outcome.whole ? 1 : 0;
  own.longest += outcome.accepted == longest ? 1 : 0;
  if (!ends.any())
    --own.rounds_left;
  else if (ends.done(own.tokens, own.emitted))
    own.rounds_left = 0;
}

// A chunk's sequences in groups. Groups run one after the other, and the sequences of a group play their rounds in turn. If
// sequences draft alike, the group is the whole chunk, in batches as close as possible to the configured size.
class Groups {
 public:
  Groups(const BlockJudging& judging, const families::ContextProcess& process, const Prepared& prepared, rng::Key key,
         int draft_length, const ChunkPlan& chunk, BitSource& source, Counts& counts)
      : judging_(judging),
        policy_(judging.policy),
        process_(process),
        key_(key),
        draft_length_(draft_length),
        chunk_(chunk),
        source_(source),
        counts_(counts),
        ends_(process.shape(), chunk.sequence_rounds, static_cast<std::uint32_t>(draft_length)),
        counter_{prepared, static_cast<std::size_t>(draft_length) + 1, process.shape().contexts == 1, counts},
        chain_(judging.drafter->tree() != nullptr && judging.drafter->tree()->is_chain()),
        reads_text_(judging.drafter->shape().reads_text),
        shares_rows_(policy_ != nullptr && policy_->shares_rows()),
        left_(chunk.rounds),
        round_(*prepared.blocks, process, key, *judging.drafter, judging.policy) {
    const int alike = policy_ != nullptr ? policy_->sequences() : 1;
    const bool in_batches = alike > 1 || shares_rows_;
    if (in_batches) batches_.resize(static_cast<std::size_t>(std::max(1.0, std::round(double{kLanes} / alike))));
    group_.resize(in_batches ? kLanes : GroupBits::kGroup);
    if (shares_rows_) forecasts_.resize(std::size_t{kLanes} * static_cast<std::size_t>(draft_length));
    contexts_.resize(group_.size());
    bits_of_group_.reserve(group_.size() / GroupBits::kGroup);
  }

  // Rounds (requests: sequences) not yet given to a group.
  [[nodiscard]] std::uint64_t left() const { return left_; }
  // Number of lanes in a group.
  [[nodiscard]] std::uint32_t abreast() const { return static_cast<std::uint32_t>(group_.size()); }

  void start_group(std::uint32_t first_lane) {
    first_lane_ = first_lane;
    process_.start(key_, chunk_.first_sequence + first_lane, abreast(), contexts_.data());
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      batches_[i].memory = policy_->start();
      batches_[i].first_lane = static_cast<std::uint32_t>((i * kLanes + batches_.size() - 1) / batches_.size());
    }
    for (live_ = 0; live_ < abreast() && left_ > 0; ++live_) {
      Sequence& own = group_[live_];
      own = Sequence();
      own.context = contexts_[live_];
      own.rounds_left = ends_.any() ? 1 : std::min<std::uint64_t>(left_, chunk_.sequence_rounds);
      left_ -= own.rounds_left;
      if (ends_.any()) own.tokens = ends_.tokens(own.context);
      if (ends_.any() && ends_.done(own.tokens, 0)) own.rounds_left = 0;
      own.memory = policy_ != nullptr ? policy_->start() : draft::LengthPolicy::Memory{.length = draft_length_};
      if (reads_text_) own.text.assign(process_.prompt().begin(), process_.prompt().end());
      own.drafter_memory = judging_.drafter->start();
    }
    bits_of_group_.clear();
    for (std::uint32_t lane = 0; lane < abreast(); lane += GroupBits::kGroup)
      bits_of_group_.emplace_back(source_, chunk_.first_sequence + first_lane + lane);
  }

  // Plays round `number` of every sequence that is not done. Returns whether any sequence continues.
  bool play_round(std::uint32_t number, Bonus bonus, RoundSink* sink) {
    bool any = false;
    for (GroupBits& random_bits : bits_of_group_) random_bits.begin(number);
    if (shares_rows_) share_rows();
    for (std::uint32_t lane = 0; lane < live_; ++lane) {
      Sequence& own = group_[lane];
      if (own.rounds_left == 0) continue;
      Batch* const batch = batch_of(lane);
      draft::LengthPolicy::Memory& memory = batch != nullptr ? batch->memory : own.memory;
      BlockRound::Start start = start_of(lane, memory, bonus);
      if (shares_rows_) start.longest = batch->verified[batch->accepted.size()];
      const BlockRound::RoundResult& outcome = round_.play(*judging_.rule, start, bits_of(lane));
      std::optional<BlockRound::Ahead> ahead;
      if (sink != nullptr && bonus == Bonus::none) ahead = round_.ahead(policy_, memory);
      const int drafted = policy_ != nullptr ? after_drafting(outcome, memory, batch) : round_.drafted();
      if (sink != nullptr) tell(*sink, first_lane_ + lane, number, outcome, drafted, ahead);
      after_round(outcome, drafted, lane);
      any = any || own.rounds_left > 0;
    }
    for (Batch& batch : batches_) {
      if (!batch.accepted.empty() && shares_rows_)
        policy_->observe_shared(batch.memory, batch.chains, batch.verified, batch.accepted);
      else if (!batch.accepted.empty())
        policy_->observe_batch(batch.memory, batch.drafted, batch.accepted);
      batch.accepted.clear();
    }
    return any;
  }

  void end_group() {
    for (std::uint32_t lane = 0; lane < live_;) {
      GroupTotals totals{.number = group_number(lane), .sequences = 0};
      for (; lane < live_ && group_number(lane) == totals.number; ++lane) {
        const Sequence& own = group_[lane];
        ++totals.sequences;
        totals.rounds += own.rounds;
        totals.full += own.full;
        totals.longest += own.longest;
        totals.emitted += own.emitted;
      }
      counts_.add_group(totals, draft_length_ > 0);
    }
  }

 private:
  [[nodiscard]] Batch* batch_of(std::uint32_t lane) { return batches_.empty() ? nullptr : &batches_[batch_index(lane)]; }
  [[nodiscard]] std::size_t batch_index(std::uint32_t lane) const { return std::size_t{lane} * batches_.size() / kLanes; }
  // The independent group of a lane: its batch if the policy ties that together, otherwise the lane itself.
  [[nodiscard]] std::uint64_t group_number(std::uint32_t lane) const {
    const std::uint64_t sequence = chunk_.first_sequence + first_lane_ + lane;
    if (batches_.empty() || !policy_->ties_sequences()) return sequence;
    return sequence / kLanes * batches_.size() + batch_index(lane);
  }
  // The random bits of a lane.
  GroupBits& bits_of(std::uint32_t lane) {
    GroupBits& random_bits = bits_of_group_[lane / GroupBits::kGroup];
    random_bits.set_lane(lane % GroupBits::kGroup);
    return random_bits;
  }
  [[nodiscard]] BlockRound::Start start_of(std::uint32_t lane, const draft::LengthPolicy::Memory& memory, Bonus bonus) const {
    const Sequence& own = group_[lane];
    return {chunk_.first_sequence + first_lane_ + lane,
            own.context,
            own.text_position,
            own.text,
            memory.length,
            own.drafter_memory.get(),
            &memory,
            bonus == Bonus::emitted};
  }
  // Drafts every chain of the round, and asks the policy how much of each is verified. When the chains are judged they are
  // drafted a second time, with the same random bits.
  void share_rows() {
    for (Batch& batch : batches_) batch.chains.clear();
    const auto length = static_cast<std::size_t>(draft_length_);
    for (std::uint32_t lane = 0; lane < live_; ++lane) {
      if (group_[lane].rounds_left == 0) continue;
      Batch& batch = *batch_of(lane);
      const std::span<draft::LengthPolicy::TokenForecast> forecasts(forecasts_.data() + lane * length, length);
      round_.draft(start_of(lane, batch.memory, Bonus::emitted), bits_of(lane), forecasts);
      batch.chains.push_back({lane - batch.first_lane, forecasts});
    }
    for (Batch& batch : batches_) {
      batch.verified.resize(batch.chains.size());
      if (!batch.chains.empty()) policy_->share(batch.memory, batch.chains, batch.verified);
    }
  }
  // Shows the round to the policy; a batch is shown when all its sequences are done. Returns how many tokens count as drafted.
  int after_drafting(const BlockRound::RoundResult& outcome, draft::LengthPolicy::Memory& memory, Batch* batch) {
    const int drafted = round_.drafted();
    const auto accepted = static_cast<int>(outcome.accepted);
    const int length = chain_ ? drafted : std::min(memory.length, draft_length_);  // length of the longest path
    if (batch != nullptr) {
      batch->drafted = length;
      batch->accepted.push_back(accepted);
    } else {
      policy_->observe(memory, length, accepted);
    }
    if (policy_->remembers_tokens()) policy_->observe_tokens(memory, round_.draft_probabilities(), accepted);
    return policy_->uses_forecasts() ? accepted : drafted;
  }

  void tell(RoundSink& sink, std::uint32_t lane, std::uint32_t number, const BlockRound::RoundResult& outcome, int drafted,
            const std::optional<BlockRound::Ahead>& ahead) const {
    sink.drafted(lane, number, static_cast<std::uint32_t>(drafted), ahead ? outcome.guessed : outcome.whole);
    if (ahead) sink.ahead(ahead->depth, ahead->nodes);
    sink.passes(round_.pass_rows());
    sink.accepted(lane, number, static_cast<std::uint32_t>(outcome.accepted));
    sink.round(lane, number, outcome.emitted, outcome.next_context);
  }

  // Counts the round and advances its sequence to the next one.
  void after_round(const BlockRound::RoundResult& outcome, int drafted, std::uint32_t lane) {
    Sequence& own = group_[lane];
    counts_.add_drafted(group_number(lane), static_cast<std::size_t>(drafted), 1, round_.pass_rows());
    counter_.add(outcome, own);
    own.context = outcome.next_context;
    own.text_position += static_cast<std::uint32_t>(outcome.emitted.size());
    if (reads_text_) own.text.insert(own.text.end(), outcome.emitted.begin(), outcome.emitted.end());
    book_round(outcome, static_cast<std::size_t>(draft_length_), ends_, own, counts_);
  }

  const BlockJudging& judging_;
  const draft::LengthPolicy* policy_;
  const families::ContextProcess& process_;
  rng::Key key_;
  int draft_length_;
  const ChunkPlan& chunk_;
  BitSource& source_;
  Counts& counts_;
  RequestEnds ends_;
  RoundCounter counter_;
  bool chain_;
  bool reads_text_;
  bool shares_rows_;
  std::uint64_t left_;
  BlockRound round_;
  std::uint32_t first_lane_ = 0;
  std::uint32_t live_ = 0;  // sequences of the group
  std::vector<Sequence> group_;
  std::vector<Batch> batches_;                                 // empty: each sequence has its own draft length
  std::vector<draft::LengthPolicy::TokenForecast> forecasts_;  // [lane][token]; empty unless rows are shared
  std::vector<std::uint32_t> contexts_;
  std::vector<GroupBits> bits_of_group_;
};

}  // namespace

void Simulator::run_blocks(const BlockJudging& judging, const ChunkPlan& chunk, BitSource& source, Counts& counts,
                           RoundSink* sink) const {
  Groups groups(judging, *plan_.contexts->process, *prepared_, draw_key_, draft_length_, chunk, source, counts);
  for (std::uint32_t lane = 0; lane < kLanes && groups.left() > 0; lane += groups.abreast()) {
    groups.start_group(lane);
    for (std::uint32_t number = 0; groups.play_round(number, bonus_, sink);) ++number;
    groups.end_group();
  }
}

}  // namespace specsim::decode
