// The hot loop against a plain one: round by round, lane by lane, token by token. The plain one shares with it the addresses of
// the words, the rules and the tables' construction, and nothing of the loop.
#include "sim/math/alias_table.h"
#include "tests/support/cells.h"

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

using namespace specsim;
using Kind = families::ContextShape::Kind;

namespace {

struct Round {
  std::vector<Token> emitted;
  std::uint32_t next_context = 0;
  bool operator==(const Round&) const = default;
};

// (chunk, lane, round) -> what it emitted.
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
  Plain(const tests::ReadyCell& ready, std::uint32_t sequence_rounds)
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
    const bool requests = shape_.request_tokens > 0;
    std::uint64_t left = total;
    for (std::uint64_t sequence = 0; left > 0; ++sequence) {
      const std::uint64_t share = requests ? 1 : std::min<std::uint64_t>(left, sequence_rounds_);
      left -= share;
      run_sequence(sequence, share, rounds, counts);
    }
  }

 private:
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
      default:
        return 0;
    }
  }

  void run_sequence(std::uint64_t sequence, std::uint64_t share, Rounds& rounds, decode::Counts& counts) {
    const auto draft_length = static_cast<std::size_t>(ready_.cell().draft_length());
    const std::uint64_t limit = shape_.request_tokens;
    const bool apart = shape_.contexts > 1 && shape_.kind != Kind::iid_pool;
    const auto class_count = static_cast<std::size_t>(classes_[0].count);
    std::vector<Token> text;
    std::uint32_t context = context_at(sequence, text, 0);
    std::uint64_t whole = 0;
    std::uint64_t emitted_whole = 0;
    std::uint64_t tries_whole = 0;
    std::uint64_t accepted_whole = 0;
    int previous_bin = -1;
    for (std::uint32_t round = 0; limit > 0 ? text.size() < limit : round < share; ++round) {
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
        emitted_whole = text.size();
        tries_whole += accepted + (rejected ? 1 : 0);
        accepted_whole += accepted;
      }
    }
    ++counts.sequences;
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

  const tests::ReadyCell& ready_;
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
  std::string parameters;
};

const std::vector<Process>& processes() {
  static const std::vector<Process> list = {
      {"fixed", ""},
      {"iid", ", pool: 11"},
      {"iid", ", pool: 1"},
      {"markov", ", order: 1"},
      {"markov", ", order: 2"},
      {"markov", ", states: 5"},
      {"regimes",
       ", states: [{}, {draft: {from: target, transform: mix_noise, value: .9}}, {}], transition: [[.7, .2, .1], [.3, .3, .4], "
       "[.5, 0, .5]]"},
      {"by_depth",
       ", drafts: [{from: target, transform: mix_noise, value: .1}, {from: target, transform: logit_noise, value: 1}, {family: "
       "uniform}]"},
      {"requests",
       ", request_tokens: 37, types: [{weight: 2, draft: {from: target, transform: mix_noise, value: .2}}, {weight: 1}, {draft: "
       "{family: uniform}}]"},
      // One context: one stratum, as the fixed process has it.
      {"markov", ", states: 1"},
      {"regimes", ", states: [{}], transition: [[1]]"},
      {"requests", ", request_tokens: 20, types: [{}]"},
      {"copy", ", prompt_tokens: 6, fidelity: .8"},
      {"trace", ", file: tests/data/trace_laws.jsonl"},
  };
  return list;
}

struct Decode {
  std::string verifier;
  bool argmax = false;
  bool one_hot_target = false;
};

// Every registered verifier with what it demands, and those without demands with an argmax draft and a target at temperature 0 as
// well.
std::vector<Decode> decodings() {
  std::vector<Decode> list;
  for (const verify::VerifierEntry& entry : verify::verifiers().entries()) {
    if (!entry.make) continue;  // judges blocks: tests/stat/blocks_test.cpp
    list.push_back({entry.info.name, entry.demands.argmax_draft, entry.demands.one_hot_target});
    if (!entry.demands.argmax_draft) list.push_back({entry.info.name, true, entry.demands.one_hot_target});
  }
  list.push_back({"token", false, true});
  return list;
}

std::string yaml_of(const Process& process, const Decode& how, int draft_length, int vocab = 13) {
  return fmt::format(
      "{{experiment: hot_path, seed: 20260450, pair: {{vocab: {}, target: {{family: dirichlet, concentration: .8}}, "
      "draft: {{from: target, transform: mix_noise, value: .4, noise: {{family: dirichlet, concentration: .3}}}}{}}}, "
      "context: {{process: {}{}}}, decode: {{verifier: {}, drafter: {{kind: chain, draft_length: {}{}}}}}}}",
      vocab, how.one_hot_target ? ", target_sampling: {temperature: 0}" : "", process.name, process.parameters, how.verifier,
      draft_length, how.argmax ? ", selection: argmax" : "");
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// What must hold of any counts; `cut_whole`: tokens of cut rounds, those beyond the end included.
void check_invariants(const decode::Counts& counts, std::uint64_t cut_whole, bool several_strata) {
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

// Shipped against plain: true where something was rejected and something accepted.
bool compare(const tests::ReadyCell& ready, std::uint32_t sequence_rounds, std::uint64_t total) {
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
  for (std::uint64_t i = chunks; i-- > 0;) {  // chunks know nothing of one another, and their counts add up
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
  if (limit == 0) {
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

// Runs with a sink go round by round, runs without one chain by chain: any rule that can is asked.
class EmptySink final : public decode::RoundSink {
 public:
  void round(std::uint32_t, std::uint32_t, std::span<const Token>, std::uint32_t) override {}
};

// Side by side it says something else than one by one.
class TwoFaced final : public verify::ChainRule {
 public:
  verify::AcceptedPath verify(verify::Block& block) const override { return {0, block.pick_target(0)}; }
  void verify_lanes(verify::ChainLanes& chains) const override {
    chains.accepted.fill(1);
    chains.final_distribution.fill(math::Residual());
  }
};

}  // namespace

TEST_CASE("the hot loop equals a plain loop: every context process, every verifier", "[hot_path]") {
  // Every registered process with prepared tables has a cell above.
  for (const families::ContextEntry& entry : families::context_processes().entries()) {
    INFO(entry.info.name);
    CHECK(std::any_of(processes().begin(), processes().end(),
                      [&](const Process& process) { return process.name == entry.info.name; }));
  }
  int lively = 0;
  for (const Process& process : processes()) {
    for (const Decode& how : decodings()) {
      if (process.name == "trace" && how.one_hot_target) continue;  // recorded distributions take no sampling settings
      for (const int draft_length : {0, 1, 4, 9}) {
        const std::string yaml = yaml_of(process, how, draft_length);
        const tests::ReadyCell ready(yaml);
        for (const std::uint32_t sequence_rounds : {1U, 7U, 64U}) {
          // A whole chunk, then a last one that holds a few whole sequences and a part of one.
          const std::uint64_t total = ready.cell().contexts->process->shape().request_tokens > 0 ? 256 + 3 * sequence_rounds
                                      : draft_length == 4 && sequence_rounds < 64
                                          ? 256 * sequence_rounds + 5 * sequence_rounds + sequence_rounds / 2
                                          : 41 * sequence_rounds + sequence_rounds / 2;
          INFO(yaml << "\nsequence_rounds " << sequence_rounds << ", total " << total);
          lively += compare(ready, sequence_rounds, total) ? 1 : 0;
        }
      }
    }
  }
  CHECK(lively > 600);  // of 12 processes x 8 decodings x 3 lengths x 3: in most cells tokens are accepted and rejected
}

TEST_CASE("chains judged side by side: the counts of chains judged one by one", "[hot_path]") {
  EmptySink sink;
  const auto both = [&](const decode::Simulator& simulator, std::uint64_t total) {
    decode::Counts side_by_side = simulator.empty_counts();
    decode::Counts one_by_one = simulator.empty_counts();
    for (std::uint64_t i = 0; i * simulator.chunk_size() < total; ++i) {
      simulator.run(i, total, side_by_side);
      simulator.run(i, total, one_by_one, &sink);
    }
    return std::pair(side_by_side, one_by_one);
  };
  for (const char* pair :
       {"{vocab: 200, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: overlap, value: 0.7}}",
        // The draft draws what the target cannot, with odds so long that a prefix of them never stays.
        "{vocab: 9, target: {from: {family: geometric, ratio: 0.01}, transform: top_k, value: 7}, draft: "
        "{family: geometric, ratio: 0.99}}"}) {
    for (const int draft_length : {1, 5, 40}) {
      for (const char* contexts : {"{process: fixed}",
                                   "{process: by_depth, drafts: [{from: target, transform: overlap, value: 0.9}, {from: target, "
                                   "transform: overlap, value: 0.6}]}"}) {
        const std::string yaml = fmt::format(
            "{{experiment: chains, rounds: 1000, pair: {}, context: {}, decode: {{drafter: {{kind: chain, draft_length: "
            "{}}}, verifier: block}}}}",
            pair, contexts, draft_length);
        INFO(yaml);
        const tests::ReadyCell ready(yaml);
        for (const std::uint64_t total : {1, 63, 700, 64 * 256 + 130}) {
          const auto [side_by_side, one_by_one] = both(ready.simulator(), total);
          CHECK(side_by_side == one_by_one);
          CHECK(side_by_side.rounds == total);
        }
      }
    }
  }
  const tests::ReadyCell ready(
      "{experiment: chains, rounds: 1000, pair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, "
      "transform: "
      "overlap, value: 0.7}}, decode: {drafter: {kind: chain, draft_length: 3}, verifier: block}}");
  decode::PreparationPlan plan = ready.preparation();
  const TwoFaced two_faced;
  plan.block_rule = &two_faced;
  const auto [side_by_side, one_by_one] = both({plan, ready.prepared(), ready.draw_key(), 3, ready.cell().sequence_rounds}, 1000);
  CHECK(side_by_side.accepted[0] == 1000);
  CHECK(one_by_one.accepted[0] == 0);
}

TEST_CASE("the hot loop equals a plain loop over several chunks of full length", "[hot_path]") {
  for (const Process& process : processes()) {
    const tests::ReadyCell ready(yaml_of(process, {"token", false, false}, 4));
    for (const std::uint64_t total : {64 * 256 - 1, 64 * 256, 64 * 256 + 1}) {
      if (ready.cell().contexts->process->shape().request_tokens > 0 && total != 64 * 256) continue;
      const std::uint64_t work = ready.cell().contexts->process->shape().request_tokens > 0 ? 1000 : total;
      INFO(process.name << process.parameters << ", total " << work);
      CHECK(compare(ready, 64, work));
    }
  }
}

TEST_CASE("the hot loop equals a plain loop at a vocabulary of 5000, one lane and the longest draft", "[hot_path]") {
  const tests::ReadyCell large(yaml_of({"iid", ", pool: 3"}, {"token", false, false}, 4, 5000));
  CHECK(compare(large, 16, 16 * 300));
  const tests::ReadyCell longest(yaml_of({"markov", ", order: 1"}, {"token", false, false}, kMaxDraftLength));
  CHECK(compare(longest, 7, 7 * 300 + 3));
  const tests::ReadyCell single(yaml_of({"regimes", processes()[6].parameters}, {"sample_match", false, false}, 4));
  CHECK(compare(single, 64, 1) == false);
  CHECK(compare(single, 64, 63));
}

TEST_CASE("a shorter run is the beginning of a longer one", "[hot_path]") {
  // Rounds have addresses: the first sequences of a long run are those of a short one.
  const tests::ReadyCell ready(yaml_of({"regimes", processes()[6].parameters}, {"token", false, false}, 4));
  const decode::Simulator simulator = ready.simulator();
  Recorder short_run;
  Recorder long_run;
  decode::Counts counts = simulator.empty_counts();
  simulator.run(0, 64 * 10, counts, &short_run);
  simulator.run(0, 64 * 200, counts, &long_run);
  REQUIRE(short_run.rounds().size() == 640);
  for (const auto& [where, round] : short_run.rounds()) REQUIRE(long_run.rounds().at(where) == round);
}

TEST_CASE("cells that differ in decode draw the same first draft token and bonus words", "[hot_path]") {
  // Paired comparisons: token and sample_match see the same drafts, so wherever both accept they emit the same tokens.
  const Process process{"iid", ", pool: 11"};
  const tests::ReadyCell token(yaml_of(process, {"token", false, false}, 1));
  const tests::ReadyCell match(yaml_of(process, {"sample_match", false, false}, 1));
  Recorder by_token;
  Recorder by_match;
  const decode::Simulator first(token.preparation(), token.prepared(), token.draw_key(), 1, 1);
  const decode::Simulator second(match.preparation(), match.prepared(), match.draw_key(), 1, 1);
  decode::Counts counts = first.empty_counts();
  first.run(0, 256, counts, &by_token);
  second.run(0, 256, counts, &by_match);
  int both = 0;
  for (const auto& [where, round] : by_token.rounds()) {
    const Round& other = by_match.rounds().at(where);
    if (round.emitted.size() < 2 || other.emitted.size() < 2) continue;
    ++both;
    REQUIRE(round == other);
  }
  CHECK(both > 20);
}

// ---- fresh distributions
// ---------------------------------------------------------------------------------------------------------

TEST_CASE("fresh distributions: the loop equals a plain loop that inverts the distribution function", "[hot_path]") {
  for (const Decode& how : decodings()) {
    for (const int draft_length : {0, 1, 4}) {
      const std::string yaml = yaml_of({"iid", ", fresh: true"}, how, draft_length);
      const tests::ReadyCell ready(yaml);
      INFO(yaml);
      constexpr std::uint32_t kSequenceRounds = 9;
      constexpr std::uint64_t kTotal = 9 * 30 + 4;
      const decode::Simulator simulator(ready.preparation(), ready.prepared(), ready.draw_key(), draft_length, kSequenceRounds);
      REQUIRE(simulator.chunk_size() == kSequenceRounds);
      decode::Counts counts = simulator.empty_counts();
      Recorder recorder;
      for (std::uint64_t i = 0; i * kSequenceRounds < kTotal; ++i) {
        recorder.chunk(i);
        simulator.run(i, kTotal, counts, &recorder);
      }

      decode::Counts expected = simulator.empty_counts();
      Rounds rounds;
      const verify::PositionRule& rule = *ready.cell().chain()->verifier;
      const families::PairSource& pair = ready.cell().contexts->pairs.at(0);
      const rng::Key distribution_key = ready.preparation().distribution_key;
      const std::size_t vocab = 13;
      // The first token at which the running sum exceeds u times the total.
      const auto pick = [](const std::vector<double>& weights, std::uint64_t bits) {
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        double running = 0.0;
        Token last = 0;
        for (std::size_t x = 0; x < weights.size(); ++x) {
          if (weights[x] == 0.0) continue;
          last = static_cast<Token>(x);
          running += weights[x];
          if (rng::to_unit(bits) * total < running) break;
        }
        return last;
      };
      decode::PhiloxBits random_bits(ready.draw_key());
      std::uint64_t left = kTotal;
      for (std::uint64_t sequence = 0; left > 0; ++sequence) {
        const std::uint64_t share = std::min<std::uint64_t>(left, kSequenceRounds);
        left -= share;
        std::uint64_t position = 0;
        std::uint64_t tries = 0;
        std::uint64_t accepted = 0;
        for (std::uint32_t round = 0; round < share; ++round) {
          std::array<std::uint64_t, 2> finals{};
          random_bits.final_token(round, sequence - sequence % 2, 2, finals.data());
          std::vector<Token> emitted;
          bool rejected = false;
          std::vector<double> target(vocab);
          std::vector<double> weights(vocab);
          for (std::size_t i = 0; i < static_cast<std::size_t>(draft_length) && !rejected; ++i, ++position) {
            const families::DistributionAddress address{distribution_key, sequence << 32 | position};
            std::vector<double> model(vocab);
            pair.draw_target(address, target);
            pair.draw_draft(address, i, target, model);
            std::vector<double> drafted = model;
            if (how.argmax) {
              const auto top = std::max_element(model.begin(), model.end()) - model.begin();
              std::fill(drafted.begin(), drafted.end(), 0.0);
              drafted[static_cast<std::size_t>(top)] = 1.0;
            }
            std::uint64_t draft_bits = 0;
            std::uint64_t accept_bits = 0;
            const std::uint32_t lane = 0;
            random_bits.draft_accept(round, static_cast<std::uint32_t>(i), sequence, &lane, 1, &draft_bits, &accept_bits);
            const Token x = pick(drafted, draft_bits);
            ++expected.reached[i];
            if (rule.matches()) {
              rule.bonus(target, weights);
              emitted.push_back(pick(weights, accept_bits));
              rejected = emitted.back() != x;
            } else {
              const verify::PositionDistributions distributions{target, drafted, model};
              rejected = !verify::accepts(rng::to_unit(accept_bits), rule.odds(distributions, x));
              if (rejected) rule.rejected(distributions, weights);
              emitted.push_back(rejected ? pick(weights, finals[sequence % 2]) : x);
            }
            ++tries;
            if (rejected) continue;
            ++expected.accepted[i];
            ++accepted;
          }
          if (!rejected) {
            pair.draw_target({distribution_key, sequence << 32 | position}, target);
            rule.bonus(target, weights);
            emitted.push_back(pick(weights, finals[sequence % 2]));
            ++position;
          }
          ++expected.accepted_distribution[emitted.size() - 1];
          rounds[{sequence, 0, round}] = {emitted, 0};
        }
        ++expected.sequences;
        expected.rounds += share;
        expected.emitted += position;
        expected.sum_rounds_squared += share * share;
        expected.sum_rounds_emitted += share * position;
        expected.sum_emitted_squared += position * position;
        expected.sum_tries += tries;
        expected.sum_accepted += accepted;
        expected.sum_tries_squared += tries * tries;
        expected.sum_tries_accepted += tries * accepted;
        expected.sum_accepted_squared += accepted * accepted;
      }
      CHECK(recorder.rounds() == rounds);
      // One round in kFreshJudged is placed, and each of its tokens once.
      std::uint64_t judged = 0;
      for (const auto& [where, round] : rounds) judged += where[2] % decode::kFreshJudged == 0 ? round.emitted.size() : 0;
      CHECK(sum_of(counts.output) == judged);
      expected.output = counts.output;
      expected.pairs = counts.pairs;
      CHECK(sum_of(counts.pairs) == 0);
      CHECK(counts == expected);
    }
  }
}
