#include "sim/decode/wide_rounds.h"

#include "sim/base/check.h"
#include "sim/decode/wide_steps.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace specsim::decode {

namespace {

constexpr std::uint64_t kClassMask = (std::uint64_t{1} << kClassBits) - 1;
constexpr std::uint64_t kMostEmitted = 0xFFFF;  // tokens of a sequence, which are counted in half a word

template <class T>
using Padded = std::array<T, kLanes + wide::kSlack>;

// The entries at the places that `at` holds: a load each, which processors have more of than their gathers make good.
inline void gather(const std::uint64_t* __restrict table, const std::uint64_t* __restrict at, std::uint32_t count,
                   std::uint64_t* __restrict entry) {
  for (std::uint32_t i = 0; i < count; ++i) entry[i] = table[at[i]];
}

}  // namespace

bool runs_wide(const RoundSetup& setup, const ChunkPlan& plan) {
  const RequestEnds ends(setup.process->shape(), plan.sequence_rounds, setup.draft_length);
  return wide::available() && setup.process->shape().contexts == 1 && setup.stratum == nullptr && !setup.matches && !ends.any() &&
         std::uint64_t{plan.sequence_rounds} * (setup.draft_length + 1) <= kMostEmitted;
}

void run_wide(const RoundSetup& setup, const ChunkPlan& plan, BitSource& random_bits, Counts& counts) {
  SPECSIM_CHECK(plan.first_sequence % kLanes == 0, "first sequence {}", plan.first_sequence);
  const PreparedContexts& tables = *setup.tables;
  const std::uint64_t vocab = tables.vocab();
  const auto classes = static_cast<std::size_t>(setup.classes);
  const bool by_depth = tables.depths() > 1;

  // All sequences have equally many rounds but the last, which may have fewer.
  const auto rounds_in = [&](std::uint64_t sequence) {
    const std::uint64_t before = sequence * plan.sequence_rounds;
    return before < plan.rounds ? std::min<std::uint64_t>(plan.rounds - before, plan.sequence_rounds) : 0;
  };
  const auto sequences = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(kLanes, (plan.rounds + plan.sequence_rounds - 1) / plan.sequence_rounds));

  // Tokens are counted by (bin of the token before, class). A lane's state is where the row of its last token's bin begins, in
  // the low half, and how many tokens it has emitted, in the high one; `after` is what a token of each class adds to the latter
  // and puts in place of the former.
  std::vector<std::uint32_t> pairs((kPairBins + 1) * classes);
  std::vector<std::uint32_t> after(classes);
  for (std::size_t kind = 0; kind < classes; ++kind)
    after[kind] = static_cast<std::uint32_t>(setup.bin_of_class[kind] * classes) + 0x10000;
  std::array<std::uint32_t, kLanes> state;
  state.fill(static_cast<std::uint32_t>(kPairBins * classes));  // before the first: a row that is dropped
  const auto count_token = [pairs = pairs.data(), after = after.data()](std::uint32_t& own, std::uint64_t kind) {
    ++pairs[(own & 0xFFFF) + kind];
    own = (own & 0xFFFF0000) + after[kind];
  };
  std::array<std::uint64_t, kLanes> full{};

  // What lies behind the lanes that count is worked on too, and not used.
  Padded<std::uint64_t> draft_bits{};
  Padded<std::uint64_t> accept_bits{};
  Padded<std::uint64_t> column{};
  Padded<std::uint64_t> rest{};
  Padded<std::uint64_t> entry{};
  Padded<std::uint64_t> final_column{};
  Padded<std::uint64_t> final_rest{};
  Padded<std::uint32_t> going{};                    // lanes that are still accepting in this round
  Padded<std::uint32_t> accepted{};                 // the same with their tokens' classes
  std::array<std::uint64_t, kLanes> rejected_at{};  // by_depth: where the lane's last judged depth begins in the tables

  std::uint32_t live = sequences;
  for (std::uint32_t round = 0;; ++round) {
    while (live > 0 && rounds_in(live - 1) <= round) --live;
    if (live == 0) break;
    std::iota(going.begin(), going.begin() + live, 0U);
    std::uint32_t on = live;
    for (std::uint32_t position = 0; position < setup.draft_length && on > 0; ++position) {
      const std::uint64_t depth = std::min<std::uint64_t>(position, tables.depths() - 1);
      const std::uint32_t judged = on;
      if (by_depth)
        for (std::uint32_t i = 0; i < judged; ++i) rejected_at[going[i]] = depth * vocab;
      random_bits.draft_accept(round, position, plan.first_sequence, going.data(), judged, draft_bits.data(), accept_bits.data());
      wide::columns(draft_bits.data(), judged, vocab, column.data(), rest.data());
      gather(tables.draft(0, depth), column.data(), judged, entry.data());
      wide::tokens(entry.data(), column.data(), rest.data(), judged, column.data());
      gather(tables.accept(0, depth), column.data(), judged, entry.data());
      on = wide::judge(accept_bits.data(), entry.data(), judged, going.data(), accepted.data());
      for (std::uint32_t i = 0; i < on; ++i) count_token(state[accepted[i] & 0xFFFF], accepted[i] >> 16);
      counts.reached[position] += judged;
      counts.accepted[position] += on;
      counts.accepted_distribution[position] += judged - on;
    }
    counts.accepted_distribution[setup.draft_length] += on;

    // The final tokens, lane by lane: after a rejection first, as if all had one, then those after full acceptance.
    random_bits.final_token(round, plan.first_sequence, kLanes, draft_bits.data());
    wide::columns(draft_bits.data(), live, vocab, final_column.data(), final_rest.data());
    if (by_depth)
      for (std::uint32_t i = 0; i < live; ++i) entry[i] = tables.rejected(0, 0)[rejected_at[i] + final_column[i]];
    else
      gather(tables.rejected(0, 0), final_column.data(), live, entry.data());
    const std::uint64_t* const bonus = tables.bonus(0);
    for (std::uint32_t i = 0; i < on; ++i) {
      entry[going[i]] = bonus[final_column[going[i]]];
      ++full[going[i]];
    }
    wide::tokens(entry.data(), final_column.data(), final_rest.data(), live, final_column.data());
    const std::uint64_t* const accept = tables.accept(0, 0);
    for (std::uint32_t i = 0; i < live; ++i) count_token(state[i], accept[final_column[i]] & kClassMask);
  }

  for (std::uint32_t who = 0; who < sequences; ++who)
    counts.add_sequence(rounds_in(who), full[who], state[who] >> 16, setup.draft_length > 0);
  const std::vector<std::uint64_t> counted(pairs.begin(), pairs.end());
  counts.add_neighbours(counted, {setup.bin_of_class, classes});
}

}  // namespace specsim::decode
