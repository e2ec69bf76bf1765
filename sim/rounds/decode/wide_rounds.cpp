#include "sim/rounds/decode/wide_rounds.h"

#include "sim/foundation/base/check.h"
#include "sim/rounds/decode/wide_steps.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace specsim::decode {

namespace {

constexpr std::uint64_t kClassMask = (std::uint64_t{1} << kClassBits) - 1;
constexpr std::uint64_t kMostEmitted = 0xFFFF;  // most tokens per sequence, since they are counted in half a word

template <class T>
using Padded = std::array<T, kLanes + wide::kSlack>;  // elements after the lanes that count are computed too, and not used

// Rounds of up to 256 sequences side by side. kMoves: every token of the text draws a new context. The caches cannot hold the
// tables of many contexts, so entries are prefetched well before they are needed.
template <bool kMoves>
class WideRounds {
 public:
  WideRounds(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts)
      : setup_(setup),
        plan_(plan),
        random_bits_(random_bits),
        counts_(counts),
        tables_(*setup.tables),
        vocab_(tables_.vocab()),
        classes_(static_cast<std::size_t>(setup.classes)),
        pairs_((kPairBins + 1) * classes_),
        after_(classes_) {
    for (std::size_t kind = 0; kind < classes_; ++kind)
      after_[kind] = static_cast<std::uint32_t>(setup.bin_of_class[kind] * classes_) + 0x10000;
    state_.fill(static_cast<std::uint32_t>(kPairBins * classes_));  // before the first: a row that is dropped
    if constexpr (kMoves) {
      setup.process->start(setup.key, plan.first_sequence, kLanes, context_.data());
      for (std::size_t i = 0; i < kLanes; ++i) offset_[i] = context_[i] * vocab_;
    }
  }

  void run() {
    std::uint32_t live = plan_.sequences();
    for (std::uint32_t round = 0;; ++round) {
      while (live > 0 && plan_.rounds_in(live - 1) <= round) --live;
      if (live == 0) break;
      play(round, live);
    }
    for (std::uint32_t who = 0; who < plan_.sequences(); ++who)
      counts_.add_group({.number = plan_.first_sequence + who,
                         .rounds = plan_.rounds_in(who),
                         .full = full_[who],
                         .longest = full_[who],
                         .emitted = state_[who] >> 16},
                        setup_.draft_length > 0);
    const std::vector<std::uint64_t> counted(pairs_.begin(), pairs_.end());
    counts_.add_neighbours(counted, {setup_.bin_of_class, classes_});
  }

 private:
  // Number of lanes that draw at a time. The next lanes draw while the entries of these are being loaded. Half as many and twice
  // as many are slower.
  static constexpr std::uint32_t kBlock = kMoves ? 32 : kLanes;

  void play(std::uint32_t round, std::uint32_t live) {
    std::iota(going_.begin(), going_.begin() + live, 0U);
    std::uint32_t on = live;
    for (std::uint32_t position = 0; position < setup_.draft_length && on > 0; ++position) {
      const std::uint32_t judged = on;
      draft(round, position, judged);
      on = judge(position, judged);
      counts_.reached[position] += judged;
      counts_.accepted[position] += on;
      counts_.accepted_distribution[position] += judged - on;
    }
    counts_.accepted_distribution[setup_.draft_length] += on;
    finish(round, live, on);
  }

  // Draws a draft token in each lane that goes on; prefetches the entries that decide on it.
  void draft(std::uint32_t round, std::uint32_t position, std::uint32_t count) {
    const std::uint64_t depth = depth_of(position);
    const std::uint64_t* const table = tables_.draft(0, depth);
    if (tables_.depths() > 1)
      for (std::uint32_t i = 0; i < count; ++i) rejected_at_[going_[i]] = depth * vocab_;
    in_blocks(count, [&](std::uint32_t at, std::uint32_t size) {
      const std::uint32_t* const lanes = going_.data() + at;
      if (round > 0 || position > 0) move(lanes, size);
      random_bits_.draft_accept(round, position, plan_.first_sequence, lanes, size, bits_.data() + at, accept_bits_.data() + at);
      wide::columns(bits_.data() + at, size, vocab_, column_.data() + at, rest_.data() + at);
      ask(table, lanes, column_.data() + at, size);
    });
    in_blocks(count, [&](std::uint32_t at, std::uint32_t size) {
      const std::uint32_t* const lanes = going_.data() + at;
      std::uint64_t* const token = column_.data() + at;
      fetch(table, lanes, token, size, entry_.data() + at);
      wide::tokens(entry_.data() + at, token, rest_.data() + at, size, token);
      ask(tables_.accept(0, depth), lanes, token, size);
    });
  }

  // Returns how many lanes accept their tokens; going_ then holds these lanes.
  std::uint32_t judge(std::uint32_t position, std::uint32_t judged) {
    fetch(tables_.accept(0, depth_of(position)), going_.data(), column_.data(), judged, entry_.data());
    const std::uint32_t on = wide::judge(accept_bits_.data(), entry_.data(), judged, going_.data(), accepted_.data());
    const Tally tally{pairs_.data(), after_.data()};
    for (std::uint32_t i = 0; i < on; ++i) tally.count(state_[accepted_[i] & 0xFFFF], accepted_[i] >> 16);
    return on;
  }

  // Draws the final tokens, lane by lane: after full acceptance in the `on` lanes that going_ holds, after a rejection in the
  // others.
  void finish(std::uint32_t round, std::uint32_t live, std::uint32_t on) {
    const std::uint64_t* const rejected = tables_.rejected(0, 0);
    const std::uint64_t* const bonus = tables_.bonus(0);
    const std::uint64_t* const accept = tables_.accept(0, 0);
    if (round > 0 || setup_.draft_length > 0) move(going_.data(), on);
    random_bits_.final_token(round, plan_.first_sequence, kLanes, bits_.data());
    wide::columns(bits_.data(), live, vocab_, column_.data(), rest_.data());
    if constexpr (kMoves) {
      std::fill_n(source_.begin(), live, rejected);
      for (std::uint32_t i = 0; i < on; ++i) source_[going_[i]] = bonus;
      for (std::uint32_t i = 0; i < live; ++i) prefetch(source_[i] += offset_[i] + column_[i]);
      for (std::uint32_t i = 0; i < live; ++i) entry_[i] = *source_[i];
    } else {
      if (tables_.depths() > 1)
        for (std::uint32_t i = 0; i < live; ++i) entry_[i] = rejected[rejected_at_[i] + column_[i]];
      else
        fetch(rejected, nullptr, column_.data(), live, entry_.data());
      for (std::uint32_t i = 0; i < on; ++i) entry_[going_[i]] = bonus[column_[going_[i]]];
    }
    for (std::uint32_t i = 0; i < on; ++i) ++full_[going_[i]];
    wide::tokens(entry_.data(), column_.data(), rest_.data(), live, column_.data());
    if constexpr (kMoves) {
      for (std::uint32_t i = 0; i < live; ++i) prefetch(accept + (column_[i] += offset_[i]));
    }
    const Tally tally{pairs_.data(), after_.data()};
    for (std::uint32_t i = 0; i < live; ++i) tally.count(state_[i], accept[column_[i]] & kClassMask);
  }

  template <class Each>
  static void in_blocks(std::uint32_t count, const Each& each) {
    for (std::uint32_t at = 0; at < count; at += kBlock) each(at, std::min(kBlock, count - at));
  }

  [[nodiscard]] std::uint64_t depth_of(std::uint32_t position) const {
    return std::min<std::uint64_t>(position, tables_.depths() - 1);
  }

  struct Tally {
    std::uint32_t* pairs;
    const std::uint32_t* after;
    void count(std::uint32_t& own, std::uint64_t kind) const {
      ++pairs[(own & 0xFFFF) + kind];
      own = (own & 0xFFFF0000) + after[kind];
    }
  };

  // Moves to the context of the next text position.
  void move(const std::uint32_t* lanes, std::uint32_t count) {
    if constexpr (kMoves) {
      static constexpr std::array<Token, kLanes> kAnyTokens{};  // the contexts of a pool do not follow from the text
      setup_.process->step(setup_.key, plan_.first_sequence, lanes, count, text_position_.data(), kAnyTokens.data(),
                           context_.data());
      for (std::uint32_t i = 0; i < count; ++i) {
        ++text_position_[lanes[i]];
        offset_[lanes[i]] = context_[lanes[i]] * vocab_;
      }
    }
  }

  // Prefetches into the second-level cache, which can have twice as many reads in flight as the first: 60 ns per round instead of
  // 95.
  static void prefetch(const std::uint64_t* entry) { __builtin_prefetch(entry, 0, 2); }
  // Loads the entries of a table, by lane, and prefetches them before if they may not be in a cache. Single loads are used, since
  // processors can issue more of them than a gather instruction gains.
  void ask(const std::uint64_t* table, const std::uint32_t* lanes, const std::uint64_t* at, std::uint32_t count) const {
    if constexpr (kMoves)
      for (std::uint32_t i = 0; i < count; ++i) prefetch(table + offset_[lanes[i]] + at[i]);
  }
  void fetch(const std::uint64_t* __restrict table, const std::uint32_t* __restrict lanes, const std::uint64_t* __restrict at,
             std::uint32_t count, std::uint64_t* __restrict entry) const {
    for (std::uint32_t i = 0; i < count; ++i) entry[i] = table[kMoves ? offset_[lanes[i]] + at[i] : at[i]];
  }

  const RoundSetup& setup_;
  const ChunkPlan& plan_;
  BitSource& random_bits_;
  Counts& counts_;
  const PreparedContexts& tables_;
  std::uint64_t vocab_;
  std::size_t classes_;

  // Tokens are counted in pairs_ by (bin of the previous token, class). A lane's state packs two 16-bit numbers. The low half is
  // where the row of its last token's bin begins in pairs_, the high half counts the lane's tokens. after_[class] has the next
  // row in its low half and a 1 in its high half, so one addition counts a token. With two arrays the loop over lanes would load
  // and store twice as much. runs_wide() ensures that the count stays below kMostEmitted.
  std::vector<std::uint32_t> pairs_;
  std::vector<std::uint32_t> after_;
  std::array<std::uint32_t, kLanes> state_;
  std::array<std::uint64_t, kLanes> full_{};

  Padded<std::uint32_t> going_{};     // lanes that are still accepting in this round
  Padded<std::uint32_t> accepted_{};  // lanes that accepted, with their tokens' classes
  Padded<std::uint64_t> bits_{};
  Padded<std::uint64_t> accept_bits_{};
  Padded<std::uint64_t> rest_{};
  Padded<std::uint64_t> column_{};  // reused for the token
  Padded<std::uint64_t> entry_{};
  std::array<std::uint64_t, kLanes>
      rejected_at_{};  // several depths: where the lane's last judged distribution begins in the tables

  // kMoves: by lane, where the tables of its context and the entry of its final token begin.
  std::array<std::uint32_t, kLanes> context_{};
  std::array<std::uint32_t, kLanes> text_position_{};
  std::array<std::uint64_t, kLanes> offset_{};
  std::array<const std::uint64_t*, kLanes> source_{};
};

}  // namespace

bool runs_wide(const RoundSetup& setup, const ChunkPlan& plan) {
  const families::ContextShape& shape = setup.process->shape();
  const RequestEnds ends(shape, plan.sequence_rounds, setup.draft_length);
  const bool pool = shape.kind == families::ContextShape::Kind::iid_pool && setup.tables->depths() == 1;
  return wide::available() && (shape.contexts == 1 || pool) && setup.stratum == nullptr && !setup.matches && !ends.any() &&
         std::uint64_t{plan.sequence_rounds} * (setup.draft_length + 1) <= kMostEmitted;
}

void run_wide(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts) {
  SPECSIM_CHECK(plan.first_sequence % kLanes == 0, "first sequence {}", plan.first_sequence);
  if (setup.process->shape().contexts == 1)
    WideRounds<false>(setup, plan, random_bits, counts).run();
  else
    WideRounds<true>(setup, plan, random_bits, counts).run();
}

}  // namespace specsim::decode
