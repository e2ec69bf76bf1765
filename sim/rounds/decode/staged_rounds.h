// The hot loop: rounds of 256 sequences in lockstep, position by position. At each position the lanes that are still accepting
// draw and decide. They are sorted into "goes on" and "stopped here" without a branch, so an acceptance rate of .7 causes no
// branch mispredictions and the memory accesses of many rounds overlap.
//
// A rejected position ends the round, so later positions are neither drawn nor judged. Their uniforms have their own addresses,
// so skipping them changes nothing else.
#pragma once

#include "sim/foundation/base/check.h"
#include "sim/foundation/math/alias_table.h"
#include "sim/rounds/decode/chunk.h"
#include "sim/rounds/decode/counts.h"
#include "sim/rounds/decode/prepared.h"
#include "sim/rounds/decode/random_bits.h"
#include "sim/rounds/families/context_process.h"

#include <algorithm>
#include <array>
#include <vector>

namespace specsim::decode {

// The decisions of a round that an implementation can get wrong and that tables cannot express. Tests replace them by faulty ones
// and prove that the suite rejects those.
struct ShippedBehaviour {
  // `threshold`: verify::accept_threshold.
  static bool accepts(std::uint64_t bits, std::uint64_t threshold) { return (bits >> 11) < threshold; }
  static std::uint32_t drafted(std::uint32_t draft_length) { return draft_length; }
  static bool goes_on(bool accepted) { return accepted; }
  static bool emits_bonus() { return true; }
};

struct RoundSetup {
  const PreparedContexts* tables = nullptr;
  const families::ContextProcess* process = nullptr;
  rng::Key key;  // addresses the context process's random numbers
  std::uint32_t draft_length = 0;
  bool matches = false;  // verify::PositionRule::matches
  int classes = 0;
  const std::uint8_t* bin_of_class = nullptr;  // [classes], see output_classes.h
  const std::uint32_t* stratum = nullptr;      // [contexts]; nullptr: one stratum
};

namespace detail {

struct Lanes {
  std::array<std::uint32_t, kLanes> context{};
  std::array<std::uint32_t, kLanes> start_context{};
  std::array<std::uint32_t, kLanes> text_position{};
  std::array<std::uint32_t, kLanes> previous_bin{};  // bin of the last emitted token; kPairBins before the first
  std::array<std::uint64_t, kLanes> rounds{};
  std::array<std::uint64_t, kLanes> full{};  // whole rounds that accepted every draft
  std::array<std::uint64_t, kLanes> emitted{};
  std::array<std::uint64_t, kLanes> rounds_left{};  // rounds to do; for requests: 0 once the request is done
  std::array<std::uint64_t, kLanes> tokens{};       // requests: of each
};

// The steps of a position, each a short loop over arrays that stay in the first-level cache. A single loop for all steps runs out
// of registers and takes twice as long.

enum class Source { draft, rejected, bonus };

template <bool kMoves>
void draw(const PreparedContexts& tables, Source source, std::uint64_t depth, const std::uint32_t* __restrict lanes,
          const std::uint32_t* __restrict context, const std::uint64_t* __restrict random_bits, std::uint32_t count,
          Token* __restrict token) {
  const std::uint64_t vocab = tables.vocab();
  const std::uint64_t* const base = source == Source::bonus      ? tables.bonus(0)
                                    : source == Source::rejected ? tables.rejected(0, depth)
                                                                 : tables.draft(0, depth);
  const std::uint64_t stride = source == Source::bonus ? vocab : vocab * tables.depths();
  // The tables of many contexts exceed the caches, so all entries of the step are prefetched before the first is needed. They go
  // to the second-level cache, which can have more reads in flight than the first.
  if constexpr (kMoves)
    for (std::uint32_t i = 0; i < count; ++i)
      __builtin_prefetch(base + context[lanes[i]] * stride + scale_bits(random_bits[i], vocab), 0, 2);
  for (std::uint32_t i = 0; i < count; ++i)
    token[i] = math::alias_pick(kMoves ? base + context[lanes[i]] * stride : base, vocab, random_bits[i]);
}

// Loads the accept entries of the drawn tokens.
template <bool kMoves>
void look_up(const PreparedContexts& tables, std::uint64_t depth, const std::uint32_t* __restrict lanes,
             const std::uint32_t* __restrict context, const Token* __restrict token, std::uint32_t count,
             std::uint64_t* __restrict entry) {
  const std::uint64_t* const base = tables.accept(0, depth);
  const std::uint64_t stride = tables.vocab() * tables.depths();
  if constexpr (kMoves)
    for (std::uint32_t i = 0; i < count; ++i) __builtin_prefetch(base + context[lanes[i]] * stride + token[i], 0, 2);
  for (std::uint32_t i = 0; i < count; ++i) entry[i] = (kMoves ? base + context[lanes[i]] * stride : base)[token[i]];
}

// Sorts lanes and their tokens into those that go on and those that stop, keeping the order; returns how many go on.
inline std::uint32_t split(const std::uint32_t* __restrict goes_on, std::uint32_t count, std::uint32_t* __restrict lanes,
                           Token* __restrict token, std::uint32_t* __restrict stopped) {
  std::uint32_t on = 0;
  std::uint32_t off = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t who = lanes[i];
    const Token x = token[i];
    const std::uint32_t yes = goes_on[i];
    lanes[on] = who;
    token[on] = x;
    stopped[off] = who;
    on += yes;
    off += 1 - yes;
  }
  return on;
}

// Counts emitted tokens: pairs of (previous token's bin, class) in one stratum, classes by stratum otherwise.
struct Tally {
  const RoundSetup* setup = nullptr;
  std::uint64_t* pairs = nullptr;   // [kPairBins + 1][classes]
  std::uint64_t* output = nullptr;  // [strata][classes]

  void emitted(const std::uint32_t* __restrict lanes, const std::uint64_t* __restrict entry,
               const std::uint32_t* __restrict counted, std::uint32_t count, Lanes& lane) const {
    constexpr std::uint64_t kClassMask = (1U << kClassBits) - 1;
    const auto classes = static_cast<std::uint64_t>(setup->classes);
    const std::uint8_t* const bin = setup->bin_of_class;
    if (setup->stratum == nullptr) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t who = lanes[i];
        const std::uint64_t kind = entry[i] & kClassMask;
        const std::uint32_t previous = lane.previous_bin[who];
        const std::uint32_t yes = counted[i];
        pairs[previous * classes + kind] += yes;
        lane.previous_bin[who] = previous ^ ((previous ^ bin[kind]) & (0U - yes));  // without a branch
      }
    } else {
      for (std::uint32_t i = 0; i < count; ++i)
        output[setup->stratum[lane.context[lanes[i]]] * classes + (entry[i] & kClassMask)] += counted[i];
    }
  }
};

// The rounds of one chunk. kMoves: several contexts. kSink: report every round. The arrays are members, so that each step of a
// round is its own function. Arrays that are not kept for the next round are written before they are read.
template <class Behaviour, bool kMoves, bool kSink>
class StagedRounds {
 public:
  StagedRounds(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts, RoundSink* sink)
      : setup_(setup),
        tables_(*setup.tables),
        plan_(plan),
        random_bits_(random_bits),
        counts_(counts),
        sink_(sink),
        draft_length_(Behaviour::drafted(setup.draft_length)),
        ends_(setup.process->shape(), plan.sequence_rounds, setup.draft_length),
        process_moves_(kMoves && setup.process->moves()),
        one_stratum_(setup.stratum == nullptr),
        stopped_before_(draft_length_ + 2) {
    SPECSIM_CHECK(plan.first_sequence % kLanes == 0, "first sequence {}", plan.first_sequence);
    all_counted_.fill(1);
    if constexpr (kSink) drafts_.resize(std::size_t{draft_length_} * kLanes);
    if (one_stratum_) pairs_.assign((kPairBins + 1) * classes(), 0);
    tally_ = {&setup, pairs_.data(), counts.output.data()};
  }

  void run() {
    const std::uint32_t sequences = start_sequences();
    for (std::uint32_t round = 0; live_ > 0; ++round) {
      judge_drafts(round);
      for (std::uint32_t length = 0; length <= draft_length_; ++length) finish(round, length);
      drop_finished();
    }
    for (std::uint32_t who = 0; who < sequences; ++who)
      counts_.add_group({.number = plan_.first_sequence + who,
                         .rounds = lane_.rounds[who],
                         .full = lane_.full[who],
                         .longest = lane_.full[who],
                         .emitted = lane_.emitted[who]},
                        setup_.draft_length > 0);
    if (one_stratum_) counts_.add_neighbours(pairs_, {setup_.bin_of_class, classes()});
  }

 private:
  template <class T>
  using PerLane = std::array<T, kLanes>;

  std::size_t classes() const { return static_cast<std::size_t>(setup_.classes); }
  std::uint64_t depth_at(std::uint32_t position) const { return std::min<std::uint64_t>(position, tables_.depths() - 1); }

  // Gives sequences their first context and their share of the chunk's rounds; returns the number of sequences.
  std::uint32_t start_sequences() {
    setup_.process->start(setup_.key, plan_.first_sequence, kLanes, lane_.context.data());
    lane_.previous_bin.fill(kPairBins);  // a row that is dropped at the end
    std::uint32_t sequences = 0;
    for (std::uint64_t left = plan_.rounds; sequences < kLanes && left > 0; ++sequences) {
      const std::uint64_t share = ends_.any() ? 1 : std::min<std::uint64_t>(left, plan_.sequence_rounds);
      left -= share;
      lane_.rounds_left[sequences] = ends_.any() ? ~std::uint64_t{0} : share;
      if (ends_.any()) lane_.tokens[sequences] = ends_.tokens(lane_.context[sequences]);
    }
    for (std::uint32_t i = 0; i < sequences; ++i)
      if (!ends_.any() || !ends_.done(lane_.tokens[i], 0)) active_[live_++] = i;
    return sequences;
  }

  // Drafts and judges position by position until no lane goes on; afterwards stopped_ holds the lanes by accepted length.
  void judge_drafts(std::uint32_t round) {
    random_bits_.final_token(round, plan_.first_sequence, kLanes, final_bits_.data());
    std::copy_n(active_.begin(), live_, going_.begin());
    if constexpr (kMoves) {
      if (setup_.process->shape().restarts()) lane_.context.fill(0);
      lane_.start_context = lane_.context;
    }
    std::uint32_t on = live_;
    std::uint32_t off = 0;
    std::uint32_t position = 0;
    for (; position < draft_length_ && on > 0; ++position) {
      const std::uint32_t judged = on;
      stopped_before_[position] = off;
      judge(round, position, judged);
      on = split(goes_on_.data(), judged, going_.data(), token_.data(), stopped_.data() + off);
      off += judged - on;
      if (position < setup_.draft_length) {
        counts_.reached[position] += judged;
        counts_.accepted[position] += on;
      }
      if (process_moves_) move(going_.data(), on);
    }
    for (std::uint32_t p = position; p <= draft_length_; ++p) stopped_before_[p] = off;
    std::copy_n(going_.begin(), on, stopped_.begin() + off);
    stopped_before_[draft_length_ + 1] = off + on;
  }

  // Draws a draft token for this position in the first `count` lanes of going_, and marks in goes_on_ the lanes that keep it.
  void judge(std::uint32_t round, std::uint32_t position, std::uint32_t count) {
    const std::uint64_t depth = depth_at(position);
    random_bits_.draft_accept(round, position, plan_.first_sequence, going_.data(), count, draft_bits_.data(),
                              accept_bits_.data());
    draw<kMoves>(tables_, Source::draft, depth, going_.data(), lane_.context.data(), draft_bits_.data(), count, token_.data());
    look_up<kMoves>(tables_, depth, going_.data(), lane_.context.data(), token_.data(), count, entry_.data());
    if (setup_.matches) {
      draw<kMoves>(tables_, Source::bonus, 0, going_.data(), lane_.context.data(), accept_bits_.data(), count, wanted_.data());
      for (std::uint32_t i = 0; i < count; ++i) {
        accepted_[i] = wanted_[i] == token_[i] ? 1 : 0;
        mismatch_[going_[i]] = wanted_[i];
      }
    } else {
      for (std::uint32_t i = 0; i < count; ++i)
        accepted_[i] = Behaviour::accepts(accept_bits_[i], entry_[i] >> kClassBits) ? 1 : 0;
    }
    for (std::uint32_t i = 0; i < count; ++i) goes_on_[i] = Behaviour::goes_on(accepted_[i] != 0) ? 1 : 0;
    tally_.emitted(going_.data(), entry_.data(), accepted_.data(), count, lane_);
    if constexpr (kSink)
      for (std::uint32_t i = 0; i < count; ++i) drafts_[std::size_t{position} * kLanes + going_[i]] = token_[i];
  }

  // The contexts of these lanes after their tokens in token_.
  void move(const std::uint32_t* lanes, std::uint32_t count) {
    setup_.process->step(setup_.key, plan_.first_sequence, lanes, count, lane_.text_position.data(), token_.data(),
                         lane_.context.data());
    for (std::uint32_t i = 0; i < count; ++i) ++lane_.text_position[lanes[i]];
  }

  // Draws the last token of the lanes that accepted `length` drafts, and counts their round.
  void finish(std::uint32_t round, std::uint32_t length) {
    const bool full = length == draft_length_;
    const bool final_emitted = !full || Behaviour::emits_bonus();
    const std::uint32_t* const who = stopped_.data() + stopped_before_[length];
    const std::uint32_t count = stopped_before_[length + 1] - stopped_before_[length];
    for (std::uint32_t i = 0; i < count; ++i) picked_bits_[i] = final_bits_[who[i]];
    if (setup_.matches && !full) {
      for (std::uint32_t i = 0; i < count; ++i) token_[i] = mismatch_[who[i]];
    } else {
      draw<kMoves>(tables_, full ? Source::bonus : Source::rejected, depth_at(length), who, lane_.context.data(),
                   picked_bits_.data(), count, token_.data());
    }
    if (final_emitted) {
      look_up<kMoves>(tables_, 0, who, lane_.context.data(), token_.data(), count, entry_.data());
      tally_.emitted(who, entry_.data(), all_counted_.data(), count, lane_);
      if (process_moves_) move(who, count);
    }
    if constexpr (kSink) report(round, length, final_emitted, who, count);
    const std::uint64_t emitted = length + (final_emitted ? 1U : 0U);
    if (ends_.any())
      enter_requests(length, emitted, full, who, count);
    else
      enter_rounds(length, emitted, full, who, count);
  }

  void report(std::uint32_t round, std::uint32_t length, bool final_emitted, const std::uint32_t* who, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::vector<Token> text;
      for (std::uint32_t p = 0; p < length; ++p) text.push_back(drafts_[std::size_t{p} * kLanes + who[i]]);
      if (final_emitted) text.push_back(token_[i]);
      sink_->accepted(who[i], round, length);
      sink_->round(who[i], round, text, lane_.context[who[i]]);
    }
  }

  // Counter of rounds by accepted length, in the stratum of lane `who`.
  std::uint64_t& rounds_of_length(std::uint32_t who, std::uint32_t length) {
    const std::size_t lengths = std::size_t{setup_.draft_length} + 1;
    const std::size_t stratum = one_stratum_ ? 0 : setup_.stratum[lane_.start_context[who]];
    return counts_.accepted_distribution[stratum * lengths + std::min<std::size_t>(length, lengths - 1)];
  }

  void enter_rounds(std::uint32_t length, std::uint64_t emitted, bool full, const std::uint32_t* who, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ++lane_.rounds[who[i]];
      lane_.emitted[who[i]] += emitted;
    }
    if (full)
      for (std::uint32_t i = 0; i < count; ++i) ++lane_.full[who[i]];
    if (one_stratum_)
      rounds_of_length(0, length) += count;
    else
      for (std::uint32_t i = 0; i < count; ++i) ++rounds_of_length(who[i], length);
  }

  // Requests end within a round: the tokens after their end are cut off.
  void enter_requests(std::uint32_t length, std::uint64_t emitted, bool full, const std::uint32_t* who, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ++rounds_of_length(who[i], length);
      const std::uint64_t room = lane_.tokens[who[i]] - lane_.emitted[who[i]];
      if (emitted > room) {
        ++counts_.cut_rounds;
        counts_.cut_emitted += room;
        lane_.rounds_left[who[i]] = 0;
        continue;
      }
      ++lane_.rounds[who[i]];
      lane_.emitted[who[i]] += emitted;
      lane_.full[who[i]] += full ? 1 : 0;
      if (ends_.done(lane_.tokens[who[i]], lane_.emitted[who[i]])) lane_.rounds_left[who[i]] = 0;
    }
  }

  void drop_finished() {
    // All sequences have the same number of rounds, except that the last may have fewer; a request's are either unlimited or
    // none.
    const bool requests = ends_.any();
    std::uint32_t still = 0;
    for (std::uint32_t i = 0; i < live_; ++i) {
      const std::uint32_t who = active_[i];
      active_[still] = who;
      still += (requests ? 0 : lane_.rounds[who]) < lane_.rounds_left[who] ? 1 : 0;
    }
    live_ = still;
  }

  const RoundSetup& setup_;
  const PreparedContexts& tables_;
  const ChunkPlan& plan_;
  BitSource& random_bits_;
  Counts& counts_;
  RoundSink* const sink_;
  const std::uint32_t draft_length_;
  const RequestEnds ends_;
  const bool process_moves_;
  const bool one_stratum_;

  Lanes lane_;
  std::uint32_t live_ = 0;                     // lanes that have rounds left
  PerLane<std::uint32_t> active_;              // those lanes, in order
  PerLane<std::uint32_t> going_;               // lanes that are still accepting in this round
  PerLane<std::uint32_t> stopped_;             // lanes that have stopped, by the position where they did
  std::vector<std::uint32_t> stopped_before_;  // [draft length + 2]: lanes that stopped before a position
  PerLane<std::uint64_t> draft_bits_;
  PerLane<std::uint64_t> accept_bits_;
  PerLane<std::uint64_t> final_bits_;
  PerLane<std::uint64_t> picked_bits_;
  PerLane<std::uint64_t> entry_;
  PerLane<std::uint32_t> accepted_;
  PerLane<std::uint32_t> goes_on_;
  PerLane<Token> token_;
  PerLane<Token> wanted_;    // matching rules: the target's own tokens, by index
  PerLane<Token> mismatch_;  // the target's own tokens of wanted_, by lane
  PerLane<std::uint32_t> all_counted_;
  std::vector<Token> drafts_;         // kSink: [position][lane]
  std::vector<std::uint64_t> pairs_;  // one stratum: [kPairBins + 1][classes]
  Tally tally_;
};

}  // namespace detail

template <class Behaviour, bool kMoves, bool kSink>
void run_staged(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts, RoundSink* sink) {
  detail::StagedRounds<Behaviour, kMoves, kSink>(setup, plan, random_bits, counts, sink).run();
}

}  // namespace specsim::decode
