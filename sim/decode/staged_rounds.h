// The hot loop: rounds of 256 sequences in lockstep, position by position. At each position the lanes that are still
// accepting draw, decide and are sorted into "goes on" and "stopped here" without a branch, so an acceptance rate of
// .7 costs no mispredictions and the memory accesses of many rounds overlap.
//
// A rejected position ends the round, so the positions after it are neither drawn nor judged: their uniforms have
// addresses of their own and nothing is disturbed by leaving them out.
#pragma once

#include "sim/base/check.h"
#include "sim/decode/chunk.h"
#include "sim/decode/counts.h"
#include "sim/decode/prepared.h"
#include "sim/decode/random_bits.h"
#include "sim/families/context_process.h"
#include "sim/math/alias_table.h"

#include <algorithm>
#include <array>
#include <vector>

namespace specsim::decode {

// The decisions of a round that a wrong implementation could get wrong and tables cannot express. Tests put faulty ones
// in its place and prove that the suite rejects them.
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
  std::array<std::uint32_t, kLanes> previous_bin{};  // the last emitted token's; kPairBins before the first
  std::array<std::uint64_t, kLanes> rounds{};
  std::array<std::uint64_t, kLanes> full{};  // whole rounds that accepted every draft
  std::array<std::uint64_t, kLanes> emitted{};
  std::array<std::uint64_t, kLanes> rounds_left{};  // rounds to do; for requests: 0 once the request is done
  std::array<std::uint64_t, kLanes> tokens{};       // requests: of each
};

// The steps of a position, each a short loop over arrays that stay in the first-level cache. One loop that does
// everything runs out of registers and takes twice as long.

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
  // Many contexts' tables exceed the caches: ask for all entries of the step before the first is needed, into the second-level
  // cache, which has more reads under way than the first.
  if constexpr (kMoves)
    for (std::uint32_t i = 0; i < count; ++i)
      __builtin_prefetch(base + context[lanes[i]] * stride + scale_bits(random_bits[i], vocab), 0, 2);
  for (std::uint32_t i = 0; i < count; ++i)
    token[i] = math::alias_pick(kMoves ? base + context[lanes[i]] * stride : base, vocab, random_bits[i]);
}

// The accept entries of the tokens drawn.
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

}  // namespace detail

// kMoves: several contexts. kSink: report every round.
template <class Behaviour, bool kMoves, bool kSink>
void run_staged(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts, RoundSink* sink) {
  SPECSIM_CHECK(plan.first_sequence % kLanes == 0, "first sequence {}", plan.first_sequence);
  const PreparedContexts& tables = *setup.tables;
  const std::uint32_t draft_length = Behaviour::drafted(setup.draft_length);
  const auto classes = static_cast<std::size_t>(setup.classes);
  const RequestEnds ends(setup.process->shape(), plan.sequence_rounds, setup.draft_length);
  const bool process_moves = kMoves && setup.process->moves();
  const bool restarts = setup.process->shape().restarts();
  const bool one_stratum = setup.stratum == nullptr;
  const auto distribution_size = static_cast<std::size_t>(setup.draft_length) + 1;

  detail::Lanes lane;
  setup.process->start(setup.key, plan.first_sequence, kLanes, lane.context.data());
  lane.previous_bin.fill(kPairBins);  // a row that is dropped at the end
  std::uint32_t live = 0;
  for (std::uint64_t left = plan.rounds; live < kLanes && left > 0; ++live) {
    const std::uint64_t share = ends.any() ? 1 : std::min<std::uint64_t>(left, plan.sequence_rounds);
    left -= share;
    lane.rounds_left[live] = ends.any() ? ~std::uint64_t{0} : share;
    if (ends.any()) lane.tokens[live] = ends.tokens(lane.context[live]);
  }
  const std::uint32_t sequences = live;

  std::array<std::uint32_t, kLanes> active;   // lanes that have rounds left, in order
  std::array<std::uint32_t, kLanes> going;    // lanes that are still accepting in this round
  std::array<std::uint32_t, kLanes> stopped;  // lanes that have stopped, by the position where they did
  std::array<std::uint64_t, kLanes> draft_bits;
  std::array<std::uint64_t, kLanes> accept_bits;
  std::array<std::uint64_t, kLanes> final_bits;
  std::array<std::uint64_t, kLanes> picked_bits;
  std::array<std::uint64_t, kLanes> entry;
  std::array<std::uint32_t, kLanes> accepted;
  std::array<std::uint32_t, kLanes> goes_on;
  std::array<Token, kLanes> token;
  std::array<Token, kLanes> wanted;    // matching rules: the target's own token, by index
  std::array<Token, kLanes> mismatch;  // the same tokens, by lane
  std::array<std::uint32_t, kLanes> all_counted;
  all_counted.fill(1);
  std::vector<std::uint32_t> stopped_before(draft_length + 2);
  std::vector<Token> drafts;  // kSink: [position][lane]
  if constexpr (kSink) drafts.resize(std::size_t{draft_length} * kLanes);
  std::vector<std::uint64_t> pairs;
  if (one_stratum) pairs.assign((kPairBins + 1) * classes, 0);
  const detail::Tally tally{&setup, pairs.data(), counts.output.data()};
  live = 0;
  for (std::uint32_t i = 0; i < sequences; ++i)
    if (!ends.any() || !ends.done(lane.tokens[i], 0)) active[live++] = i;

  for (std::uint32_t round = 0; live > 0; ++round) {
    random_bits.final_token(round, plan.first_sequence, kLanes, final_bits.data());
    std::copy_n(active.begin(), live, going.begin());
    if constexpr (kMoves) {
      if (restarts) lane.context.fill(0);
      lane.start_context = lane.context;
    }
    std::uint32_t on = live;
    std::uint32_t off = 0;
    std::uint32_t position = 0;
    for (; position < draft_length && on > 0; ++position) {
      const std::uint64_t depth = std::min<std::uint64_t>(position, tables.depths() - 1);
      const std::uint32_t judged = on;
      stopped_before[position] = off;
      random_bits.draft_accept(round, position, plan.first_sequence, going.data(), judged, draft_bits.data(), accept_bits.data());
      detail::draw<kMoves>(tables, detail::Source::draft, depth, going.data(), lane.context.data(), draft_bits.data(), judged,
                           token.data());
      detail::look_up<kMoves>(tables, depth, going.data(), lane.context.data(), token.data(), judged, entry.data());
      if (setup.matches) {
        detail::draw<kMoves>(tables, detail::Source::bonus, 0, going.data(), lane.context.data(), accept_bits.data(), judged,
                             wanted.data());
        for (std::uint32_t i = 0; i < judged; ++i) {
          accepted[i] = wanted[i] == token[i] ? 1 : 0;
          mismatch[going[i]] = wanted[i];
        }
      } else {
        for (std::uint32_t i = 0; i < judged; ++i)
          accepted[i] = Behaviour::accepts(accept_bits[i], entry[i] >> kClassBits) ? 1 : 0;
      }
      for (std::uint32_t i = 0; i < judged; ++i) goes_on[i] = Behaviour::goes_on(accepted[i] != 0) ? 1 : 0;
      tally.emitted(going.data(), entry.data(), accepted.data(), judged, lane);
      if constexpr (kSink)
        for (std::uint32_t i = 0; i < judged; ++i) drafts[std::size_t{position} * kLanes + going[i]] = token[i];
      on = detail::split(goes_on.data(), judged, going.data(), token.data(), stopped.data() + off);
      off += judged - on;
      if (position < setup.draft_length) {
        counts.reached[position] += judged;
        counts.accepted[position] += on;
      }
      if (process_moves) {
        setup.process->step(setup.key, plan.first_sequence, going.data(), on, lane.text_position.data(), token.data(),
                            lane.context.data());
        for (std::uint32_t i = 0; i < on; ++i) ++lane.text_position[going[i]];
      }
    }
    for (std::uint32_t p = position; p <= draft_length; ++p) stopped_before[p] = off;
    std::copy_n(going.begin(), on, stopped.begin() + off);
    stopped_before[draft_length + 1] = off + on;

    std::uint32_t still = 0;
    for (std::uint32_t length = 0; length <= draft_length; ++length) {
      const bool full = length == draft_length;
      const std::uint32_t* const who = stopped.data() + stopped_before[length];
      const std::uint32_t count = stopped_before[length + 1] - stopped_before[length];
      const std::uint64_t depth = std::min<std::uint64_t>(length, tables.depths() - 1);
      const bool final_emitted = !full || Behaviour::emits_bonus();
      const std::uint64_t emitted = length + (final_emitted ? 1U : 0U);
      for (std::uint32_t i = 0; i < count; ++i) picked_bits[i] = final_bits[who[i]];
      if (setup.matches && !full) {
        for (std::uint32_t i = 0; i < count; ++i) token[i] = mismatch[who[i]];
      } else {
        detail::draw<kMoves>(tables, full ? detail::Source::bonus : detail::Source::rejected, depth, who, lane.context.data(),
                             picked_bits.data(), count, token.data());
      }
      if (final_emitted) {
        detail::look_up<kMoves>(tables, 0, who, lane.context.data(), token.data(), count, entry.data());
        tally.emitted(who, entry.data(), all_counted.data(), count, lane);
        if (process_moves) {
          setup.process->step(setup.key, plan.first_sequence, who, count, lane.text_position.data(), token.data(),
                              lane.context.data());
          for (std::uint32_t i = 0; i < count; ++i) ++lane.text_position[who[i]];
        }
      }
      if constexpr (kSink) {
        for (std::uint32_t i = 0; i < count; ++i) {
          std::vector<Token> text;
          for (std::uint32_t p = 0; p < length; ++p) text.push_back(drafts[std::size_t{p} * kLanes + who[i]]);
          if (final_emitted) text.push_back(token[i]);
          sink->accepted(who[i], round, length);
          sink->round(who[i], round, text, lane.context[who[i]]);
        }
      }
      const std::size_t distribution_at = std::min<std::size_t>(length, distribution_size - 1);
      if (!ends.any()) {
        for (std::uint32_t i = 0; i < count; ++i) {
          ++lane.rounds[who[i]];
          lane.emitted[who[i]] += emitted;
        }
        if (full)
          for (std::uint32_t i = 0; i < count; ++i) ++lane.full[who[i]];
        if (one_stratum)
          counts.accepted_distribution[distribution_at] += count;
        else
          for (std::uint32_t i = 0; i < count; ++i)
            ++counts.accepted_distribution[setup.stratum[lane.start_context[who[i]]] * distribution_size + distribution_at];
      } else {
        for (std::uint32_t i = 0; i < count; ++i) {
          const std::size_t stratum = one_stratum ? 0 : setup.stratum[lane.start_context[who[i]]];
          ++counts.accepted_distribution[stratum * distribution_size + distribution_at];
          const std::uint64_t room = lane.tokens[who[i]] - lane.emitted[who[i]];
          if (emitted > room) {
            ++counts.cut_rounds;
            counts.cut_emitted += room;
            lane.rounds_left[who[i]] = 0;
            continue;
          }
          ++lane.rounds[who[i]];
          lane.emitted[who[i]] += emitted;
          lane.full[who[i]] += full ? 1 : 0;
          if (ends.done(lane.tokens[who[i]], lane.emitted[who[i]])) lane.rounds_left[who[i]] = 0;
        }
      }
    }
    if (!ends.any()) {
      // All sequences have equally many rounds but the last, which may have fewer.
      for (std::uint32_t i = 0; i < live; ++i) {
        const std::uint32_t who = active[i];
        active[still] = who;
        still += lane.rounds[who] < lane.rounds_left[who] ? 1 : 0;
      }
    } else {
      for (std::uint32_t i = 0; i < live; ++i) {
        const std::uint32_t who = active[i];
        active[still] = who;
        still += lane.rounds_left[who] > 0 ? 1 : 0;
      }
    }
    live = still;
  }

  for (std::uint32_t who = 0; who < sequences; ++who)
    counts.add_sequence(lane.rounds[who], lane.full[who], lane.emitted[who], setup.draft_length > 0);
  if (one_stratum) counts.add_neighbours(pairs, {setup.bin_of_class, classes});
}

}  // namespace specsim::decode
