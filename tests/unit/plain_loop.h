// The hot loop's rounds computed again by a plain loop: round by round, lane by lane, token by token. It shares the addresses of
// the random numbers, the rules and the tables' construction with the hot loop, but no part of the loop.
#pragma once

#include "sim/foundation/math/alias_table.h"
#include "tests/support/cells.h"
#include "tests/support/samples.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace specsim::tests {

using Kind = families::ContextShape::Kind;

struct Round {
  std::vector<Token> emitted;
  std::uint32_t next_context = 0;
  bool operator==(const Round&) const = default;
};

// (chunk, lane, round) -> its emitted tokens.
using Rounds = std::map<std::array<std::uint64_t, 3>, Round>;

class Recorder final : public decode::RoundSink {
 public:
  void chunk(std::uint64_t index) { chunk_ = index; }
  void round(std::uint32_t lane, std::uint32_t round, std::span<const Token> emitted, std::uint32_t next_context) override {
    const bool fresh =
        rounds_.emplace(std::array<std::uint64_t, 3>{chunk_, lane, round}, Round{{emitted.begin(), emitted.end()}, next_context})
            .second;
    if (!fresh) ++twice;
  }
  [[nodiscard]] const Rounds& rounds() const { return rounds_; }
  std::uint64_t twice = 0;

 private:
  std::uint64_t chunk_ = 0;
  Rounds rounds_;
};

// ---- the plain loop -----------------------------------------------------------------------------------------------------

// One context's distributions and tables at one depth.
struct Tables {
  std::vector<double> target;
  std::vector<double> drafted;
  std::vector<double> draft_model;
  math::AliasTable draft;
  math::AliasTable rejected;
  math::AliasTable bonus;
};

class Plain {
 public:
  Plain(const ReadyCell& ready, std::uint32_t sequence_rounds)
      : ready_(ready),
        shape_(ready.cell().contexts->process->shape()),
        rule_(*ready.cell().chain()->verifier),
        random_bits_(ready.draw_key()),
        sequence_rounds_(sequence_rounds) {
    const decode::DistributionDrawer drawer(ready.preparation());
    for (std::size_t context = 0; context < static_cast<std::size_t>(shape_.contexts); ++context) {
      std::vector<Tables> depths;
      for (std::size_t depth = 0; depth < static_cast<std::size_t>(shape_.depths); ++depth) {
        Tables own;
        drawer.target(context, context, own.target);
        drawer.draft(context, context, depth, own.target, own.draft_model, own.drafted);
        std::vector<double> weights(own.target.size());
        rule_.bonus(own.target, weights);
        own.bonus = math::AliasTable(weights);
        rule_.rejected(distributions(own), weights);
        own.rejected = *std::max_element(weights.begin(), weights.end()) > 0.0 ? math::AliasTable(weights) : own.bonus;
        own.draft = math::AliasTable(own.drafted);
        depths.push_back(std::move(own));
      }
      classes_.push_back(decode::output_classes(depths[0].target, depths[0].drafted, shape_.contexts == 1));
      tables_.push_back(std::move(depths));
    }
    if (!shape_.start.empty()) start_ = math::AliasTable(shape_.start);
    const auto n = static_cast<std::size_t>(shape_.contexts);
    for (std::size_t i = 0; i < n && !shape_.transition.empty(); ++i)
      rows_.emplace_back(std::span(shape_.transition).subspan(i * n, n));
  }

  // `total` rounds (requests: sequences), one sequence after the other.
  void run(std::uint64_t total, Rounds& rounds, decode::Counts& counts) {
    const bool requests = shape_.request_tokens > 0 || recorded();
    std::uint64_t left = total;
    for (std::uint64_t sequence = 0; left > 0; ++sequence) {
      const std::uint64_t share = requests ? 1 : std::min<std::uint64_t>(left, sequence_rounds_);
      left -= share;
      run_sequence(sequence, share, rounds, counts);
    }
  }

 private:
  // Requests of a record, each to its end, if no number of rounds is given.
  [[nodiscard]] bool recorded() const { return sequence_rounds_ == 0; }

  // Tokens of the recorded request that begins here.
  [[nodiscard]] std::uint64_t tokens_from(std::uint32_t context) const {
    std::uint64_t tokens = static_cast<std::uint64_t>(shape_.contexts) - context;
    for (const std::uint32_t start : shape_.starts)
      if (start > context) tokens = std::min<std::uint64_t>(tokens, start - context);
    return tokens;
  }

  static verify::PositionDistributions distributions(const Tables& at) { return {at.target, at.drafted, at.draft_model}; }

  std::uint64_t bits(rng::Purpose purpose, std::uint32_t word1, std::uint64_t sequence) const {
    return rng::philox_bits({rng::counter_word0(purpose, 0), word1, static_cast<std::uint32_t>(sequence),
                             static_cast<std::uint32_t>(sequence >> 32)},
                            ready_.draw_key())
        .first;
  }

  // The context at a text position, from the text and, for regimes, the context before it.
  std::uint32_t context_at(std::uint64_t sequence, const std::vector<Token>& text, std::uint32_t before) const {
    const auto position = static_cast<std::uint32_t>(text.size());
    switch (shape_.kind) {
      case Kind::iid_pool:
        return static_cast<std::uint32_t>(
            scale_bits(bits(rng::Purpose::context, position, sequence), static_cast<std::uint64_t>(shape_.contexts)));
      case Kind::regimes:
        return position == 0 ? start_.pick(bits(rng::Purpose::start, 0, sequence))
                             : rows_[before].pick(bits(rng::Purpose::context, position, sequence));
      case Kind::markov:
        return position == 0 ? 0 : ready_.cell().contexts->process->next(before, text.back());
      case Kind::requests:
        return start_.pick(bits(rng::Purpose::start, 0, sequence));
      case Kind::trace:
        if (position > 0) return (before + 1) % static_cast<std::uint32_t>(shape_.contexts);
        return shape_.starts[scale_bits(bits(rng::Purpose::start, 0, sequence), shape_.starts.size())];
      case Kind::other:
        return stepped(sequence, text, before);
      default:
        return 0;
    }
  }

  // For processes without a plain form here, the process itself: one sequence, one position at a time.
  std::uint32_t stepped(std::uint64_t sequence, const std::vector<Token>& text, std::uint32_t before) const {
    const families::ContextProcess& process = *ready_.cell().contexts->process;
    std::uint32_t context = before;
    const std::uint32_t lane = 0;
    if (text.empty())
      process.start(ready_.draw_key(), sequence, 1, &context);
    else if (const auto position = static_cast<std::uint32_t>(text.size() - 1); process.moves())
      process.step(ready_.draw_key(), sequence, &lane, 1, &position, &text.back(), &context);
    return context;
  }

  void run_sequence(std::uint64_t sequence, std::uint64_t share, Rounds& rounds, decode::Counts& counts) {
    const auto draft_length = static_cast<std::size_t>(ready_.cell().draft_length());
    const bool apart = shape_.contexts > 1 && shape_.kind != Kind::iid_pool;
    const auto class_count = static_cast<std::size_t>(classes_[0].count);
    std::vector<Token> text;
    std::uint32_t context = context_at(sequence, text, 0);
    const std::uint64_t limit = recorded() ? tokens_from(context) : shape_.request_tokens;
    const std::uint64_t kept_free = recorded() ? draft_length : 0;
    std::uint64_t whole = 0;
    std::uint64_t full_whole = 0;
    std::uint64_t emitted_whole = 0;
    std::uint64_t tries_whole = 0;
    std::uint64_t accepted_whole = 0;
    int previous_bin = -1;
    for (std::uint32_t round = 0; limit > 0 ? text.size() + kept_free < limit : round < share; ++round) {
      const std::uint32_t start_context = context;
      const std::size_t length_before = text.size();
      const auto emit = [&](Token token) {
        const decode::OutputClasses& classes = classes_[context];
        const std::size_t kind = classes.of_token[token];
        ++counts.output[(apart ? context : 0) * class_count + kind];
        if (!apart) {
          const int bin = classes.bin_of_class[kind];
          if (previous_bin >= 0)
            ++counts.pairs[static_cast<std::size_t>(previous_bin) * decode::kPairBins + static_cast<std::size_t>(bin)];
          previous_bin = bin;
        }
        text.push_back(token);
        context = context_at(sequence, text, context);
      };
      std::array<std::uint64_t, 2> finals{};
      random_bits_.final_token(round, sequence - sequence % 2, 2, finals.data());
      const std::uint64_t final_bits = finals[sequence % 2];
      std::size_t accepted = 0;
      bool rejected = false;
      while (accepted < draft_length && !rejected) {
        const Tables& at = tables_[context][std::min<std::size_t>(accepted, static_cast<std::size_t>(shape_.depths) - 1)];
        std::uint64_t draft_bits = 0;
        std::uint64_t accept_bits = 0;
        const std::uint32_t lane = 0;
        random_bits_.draft_accept(round, static_cast<std::uint32_t>(accepted), sequence, &lane, 1, &draft_bits, &accept_bits);
        const Token x = at.draft.pick(draft_bits);
        ++counts.reached[accepted];
        Token final_token = 0;
        if (rule_.matches()) {
          final_token = at.bonus.pick(accept_bits);
          rejected = final_token != x;
        } else {
          rejected = !verify::accepts(rng::to_unit(accept_bits), rule_.odds(distributions(at), x));
          if (rejected) final_token = at.rejected.pick(final_bits);
        }
        if (rejected) {
          emit(final_token);
        } else {
          ++counts.accepted[accepted++];
          emit(x);
        }
      }
      if (!rejected) emit(tables_[context][0].bonus.pick(final_bits));
      rounds[{sequence / decode::kLanes, sequence % decode::kLanes, round}] = {
          {text.begin() + static_cast<std::ptrdiff_t>(length_before), text.end()}, context};
      ++counts.accepted_distribution[(apart ? start_context : 0) * (draft_length + 1) + accepted];
      if (limit > 0 && text.size() > limit) {
        ++counts.cut_rounds;
        counts.cut_emitted += limit - length_before;
      } else {
        ++whole;
        full_whole += rejected ? 0 : 1;
        emitted_whole = text.size();
        tries_whole += accepted + (rejected ? 1 : 0);
        accepted_whole += accepted;
      }
    }
    ++counts.sequences;
    ++counts.groups;
    counts.part_rounds[sequence % decode::kParts] += whole;
    counts.part_emitted[sequence % decode::kParts] += emitted_whole;
    counts.part_longest[sequence % decode::kParts] += full_whole;
    counts.rounds += whole;
    counts.emitted += emitted_whole;
    counts.sum_rounds_squared += whole * whole;
    counts.sum_rounds_emitted += whole * emitted_whole;
    counts.sum_emitted_squared += emitted_whole * emitted_whole;
    counts.sum_tries += tries_whole;
    counts.sum_accepted += accepted_whole;
    counts.sum_tries_squared += tries_whole * tries_whole;
    counts.sum_tries_accepted += tries_whole * accepted_whole;
    counts.sum_accepted_squared += accepted_whole * accepted_whole;
  }

  const ReadyCell& ready_;
  const families::ContextShape& shape_;
  const verify::PositionRule& rule_;
  decode::PhiloxBits random_bits_;
  std::uint32_t sequence_rounds_;
  std::vector<std::vector<Tables>> tables_;  // [context][depth]
  std::vector<decode::OutputClasses> classes_;
  math::AliasTable start_;
  std::vector<math::AliasTable> rows_;
};

// ---- cells --------------------------------------------------------------------------------------------------------------

struct Process {
  std::string name;  // in the registry
  std::string text;  // "{process: NAME, ...}"
};

inline Process process_with(const std::string& name, const std::string& parameters) {
  return {name, fmt::format("{{process: {}{}{}}}", name, parameters.empty() ? "" : ", ", parameters)};
}

inline const Process kRegimes = process_with("regimes",
                                             "states: [{}, {draft: {from: target, transform: mix_noise, value: .9}}, {}], "
                                             "transition: [[.7, .2, .1], [.3, .3, .4], [.5, 0, "
                                             ".5]]");

// Processes with parameters that matter to the loop, and all other registered ones by their entries.
inline const std::vector<Process>& processes() {
  static const std::vector<Process> list = [] {
    std::vector<Process> all = {
        process_with("fixed", ""),
        process_with("iid", "pool: 11"),
        process_with("iid", "pool: 1"),
        process_with("markov", "order: 1"),
        process_with("markov", "order: 2"),
        process_with("markov", "states: 5"),
        kRegimes,
        process_with(
            "by_depth",
            "drafts: [{from: target, transform: mix_noise, value: .1}, {from: target, transform: logit_noise, value: 1}, "
            "{family: uniform}]"),
        process_with("requests",
                     "request_tokens: 37, types: [{weight: 2, draft: {from: target, transform: mix_noise, value: .2}}, {weight: "
                     "1}, {draft: {family: uniform}}]"),
        // One context: one stratum, as the fixed process has it.
        process_with("markov", "states: 1"),
        process_with("regimes", "states: [{}], transition: [[1]]"),
        process_with("requests", "request_tokens: 20, types: [{}]"),
        process_with("copy", "prompt_tokens: 6, fidelity: .8"),
        process_with("trace", "file: tests/data/trace_long.jsonl"),
    };
    for (const families::ContextEntry& entry : families::context_processes().entries()) {
      const auto known = [&](const Process& process) { return process.name == entry.info.name; };
      if (std::any_of(all.begin(), all.end(), known)) continue;
      if (entry.info.name == "acceptance_table") continue;  // its rounds restart, and its tokens are ranked, not drawn
      for (const std::string& sample : samples_of(entry.info, "process")) all.push_back({entry.info.name, sample});
    }
    return all;
  }();
  return list;
}

struct Decode {
  std::string verifier;
  bool argmax = false;
  bool one_hot_target = false;
};

// Every registered verifier with its required settings; those without requirements also with an argmax draft and a target at
// temperature 0.
inline std::vector<Decode> decodings() {
  std::vector<Decode> list;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.make) continue;  // judges blocks: tests/stat/blocks_test.cpp
    list.push_back({entry.info.name, entry.demands.argmax_draft, entry.demands.one_hot_target});
    if (!entry.demands.argmax_draft) list.push_back({entry.info.name, true, entry.demands.one_hot_target});
  }
  list.push_back({"token", false, true});
  return list;
}

inline std::string yaml_of(const Process& process, const Decode& how, int draft_length, int vocab = 13) {
  return fmt::format(
      "{{experiment: hot_path, seed: 20260450, pair: {{vocab: {}, target: {{family: dirichlet, concentration: .8}}, "
      "draft: {{from: target, transform: mix_noise, value: .4, noise: {{family: dirichlet, concentration: .3}}}}{}}}, "
      "context: {}, decode: {{verifier: {}, drafter: {{kind: chain, draft_length: {}{}}}}}}}",
      vocab, how.one_hot_target ? ", target_sampling: {temperature: 0}" : "", process.text, how.verifier, draft_length,
      how.argmax ? ", selection: argmax" : "");
}

inline std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// Invariants of any counts; `cut_whole`: tokens of cut rounds, those beyond the end included.
inline void check_invariants(const decode::Counts& counts, std::uint64_t cut_whole, bool several_strata) {
  const std::size_t length = counts.reached.size();
  const std::uint64_t all = counts.rounds + counts.cut_rounds;
  CHECK(sum_of(counts.accepted_distribution) == all);
  CHECK(sum_of(counts.output) == counts.emitted + cut_whole);
  for (std::size_t i = 0; i < length; ++i) {
    CHECK(counts.reached[i] == (i == 0 ? all : counts.accepted[i - 1]));
    CHECK(counts.accepted[i] <= counts.reached[i]);
  }
  CHECK(counts.emitted + cut_whole == sum_of(counts.accepted) + all);
  std::uint64_t by_distribution = 0;
  for (std::size_t i = 0; i < counts.accepted_distribution.size(); ++i)
    by_distribution += counts.accepted_distribution[i] * (i % (length + 1) + 1);
  CHECK(by_distribution == counts.emitted + cut_whole);
  CHECK(counts.cut_emitted <= cut_whole);
  CHECK(counts.emitted == (length > 0 ? counts.sum_accepted : 0) + counts.rounds);
  if (counts.cut_rounds == 0) {
    CHECK(cut_whole == 0);
    CHECK(counts.sum_tries == sum_of(counts.reached));
    CHECK(counts.sum_accepted == sum_of(counts.accepted));
  } else {
    CHECK(counts.sum_tries <= sum_of(counts.reached));
    CHECK(counts.sum_accepted <= sum_of(counts.accepted));
  }
  if (!several_strata) CHECK(sum_of(counts.pairs) == counts.emitted + cut_whole - counts.sequences);
  if (several_strata) CHECK(counts.pairs.empty());
  // Cauchy and Schwarz, over the sequences.
  const auto product = static_cast<long double>(counts.sum_rounds_squared) * static_cast<long double>(counts.sum_emitted_squared);
  const auto mixed = static_cast<long double>(counts.sum_rounds_emitted);
  CHECK(mixed * mixed <= product * (1.0L + 1e-15L));
  CHECK(static_cast<long double>(counts.rounds) * static_cast<long double>(counts.rounds) <=
        static_cast<long double>(counts.sequences) * static_cast<long double>(counts.sum_rounds_squared));
}

// The built-in loop compared with the plain one: true if tokens were both rejected and accepted.
inline bool compare(const ReadyCell& ready, std::uint32_t sequence_rounds, std::uint64_t total) {
  const decode::Simulator simulator(ready.preparation(), ready.prepared(), ready.draw_key(), ready.cell().draft_length(),
                                    sequence_rounds);
  decode::Counts counts = simulator.empty_counts();
  decode::Counts without_sink = counts;
  decode::Counts plain_counts = counts;
  Recorder recorder;
  const std::uint64_t chunks = (total + simulator.chunk_size() - 1) / simulator.chunk_size();
  for (std::uint64_t i = 0; i < chunks; ++i) {
    recorder.chunk(i);
    simulator.run(i, total, counts, &recorder);
  }
  for (std::uint64_t i = chunks; i-- > 0;) {  // chunks are independent, and their counts add up
    decode::Counts own = simulator.empty_counts();
    simulator.run(i, total, own);
    without_sink.add(own);
  }
  Rounds plain_rounds;
  Plain(ready, sequence_rounds).run(total, plain_rounds, plain_counts);

  CHECK(recorder.twice == 0);
  CHECK(recorder.rounds().size() == plain_rounds.size());
  CHECK(recorder.rounds() == plain_rounds);
  CHECK(counts == plain_counts);
  CHECK(without_sink == counts);

  const std::uint64_t limit = ready.cell().contexts->process->shape().request_tokens;
  if (sequence_rounds == 0) {
    CHECK(counts.sequences == total);
    CHECK(counts.cut_rounds == 0);
  } else if (limit == 0) {
    CHECK(counts.rounds == total);
    CHECK(counts.cut_rounds == 0);
    CHECK(counts.sequences == (total + sequence_rounds - 1) / sequence_rounds);
  } else {
    CHECK(counts.sequences == total);
    CHECK(counts.emitted + counts.cut_emitted == total * limit);
  }
  std::uint64_t everything = 0;
  for (const auto& [where, round] : recorder.rounds()) everything += round.emitted.size();
  check_invariants(counts, everything - counts.emitted, ready.prepared().strata > 1);
  return !counts.reached.empty() && counts.accepted[0] > 0 && counts.accepted[0] < counts.reached[0];
}

}  // namespace specsim::tests
