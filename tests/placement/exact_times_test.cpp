// Placements compared with closed forms that hold to the picosecond, for any accepted counts.
#include "sim/foundation/base/check.h"
#include "tests/placement/batches.h"
#include "tests/support/placement_theory.h"
#include "tests/support/samples.h"

#include <algorithm>
#include <numeric>

namespace specsim::exact_times_test {

using namespace specsim::placement;
using decode::Bonus;
using specsim::tests::Line;
using specsim::tests::LineCost;
using specsim::tests::rounds_of;
using specsim::tests::simulate;
using specsim::tests::simulated;

namespace {

// Whole picoseconds: 7.123456 us per target pass, 1.000001 us per draft pass, .5 us per round.
constexpr std::int64_t kTargetPs = 7'123'456;
constexpr std::int64_t kDraftPs = 1'000'001;
constexpr std::int64_t kRoundPs = 500'000;
LineCost constant_cost() { return {{7.123456}, {1.000001}, 0.5}; }

std::int64_t last_of(const AcceptedCounts& accepted, std::uint64_t tokens) {
  const auto rounds = rounds_of(accepted, tokens);
  return static_cast<std::int64_t>(*std::max_element(rounds.begin(), rounds.end()));
}

// Every placement of the registry, and a division of the GPU that is not the default one.
const std::vector<std::string>& all_placements() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> all = {"{kind: shared, target_share: .75, draft_share: .5}"};
    for (const PlacementEntry& entry : placements().entries())
      for (const std::string& sample : tests::samples_of(entry.info)) all.push_back(sample);
    return all;
  }();
  return list;
}

AcceptedCounts counts_for(const std::string& kind, double alpha, int draft_length, std::size_t sequences, std::uint64_t tokens,
                          std::uint64_t seed) {
  const auto placement = tests::make_placement(kind);
  if (placement->speculates()) return simulated(alpha, draft_length, placement->bonus(), sequences, tokens, seed);
  AcceptedCounts none;
  none.of_sequence.resize(sequences);
  return none;
}

}  // namespace

TEST_CASE("serial time is its closed form to the picosecond") {
  const LineCost cost = constant_cost();
  for (const int draft_length : {1, 4, 7}) {
    for (const std::size_t sequences : {1, 5, 300}) {
      const AcceptedCounts accepted = simulated(0.7, draft_length, Bonus::emitted, sequences, 99, 20260401);
      const Result result = simulate("{kind: serial}", cost, accepted, 100);
      const std::int64_t rounds = last_of(accepted, 99);
      // Blocks are rounded once, not pass by pass.
      CHECK(result.end.ps() == kTargetPs + kDraftPs + rounds * (draft_length * kDraftPs + kTargetPs + kRoundPs));
      CHECK(static_cast<std::int64_t>(result.rounds) == rounds);
      CHECK(result.parts.draft.ps() == rounds * draft_length * kDraftPs);
      CHECK(result.parts.verify.ps() == rounds * kTargetPs);
      CHECK(result.parts.host.ps() == rounds * kRoundPs);
      CHECK(result.parts.prefill.ps() == kTargetPs + kDraftPs);
      CHECK(result.time_to_first_token.ps() == kTargetPs);
      const auto all = rounds_of(accepted, 99);
      CHECK(result.sequence_rounds == std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
    }
  }
}

TEST_CASE("plain decoding is draft length 0, for every placement") {
  const LineCost cost({5.0, 0.01, 0.0001}, {1.0, 0.002, 0.00001}, 0.5);
  const tests::ReadyCell cell(
      "{experiment: plain, pair: {vocab: 50, target: {family: zipf, exponent: 1}, draft: {family: uniform}}, "
      "decode: {drafter: {kind: chain, draft_length: 0}}}");
  AcceptedCounts none;
  none.of_sequence.resize(3);
  const Result plain = simulate("{kind: plain}", cost, none, 40);
  CHECK(plain.rounds == 39);
  std::int64_t expected = 0;  // the prefill's first token, then 39 passes over growing contexts
  expected += std::llround(1e6 * (5.0 + 0.01 * 3 * 100));
  for (int i = 0; i < 39; ++i) expected += std::llround(1e6 * (5.0 + 0.01 * 3 + 0.0001 * 3 * (100 + i)));
  CHECK(plain.end.ps() == expected);
  // The general loop at draft length 0 does the same, except for the draft's prefill.
  const Result serial = simulate("{kind: serial}", cost, none, 40);
  CHECK(serial.end.ps() == expected + std::llround(1e6 * (1.0 + 0.002 * 3 * 100)));
  for (const std::string& kind : all_placements()) {
    PlacedBatch setting;
    setting.placement = tests::make_placement(kind);
    setting.batch = 3;
    setting.prompt_tokens = 100;
    setting.output_tokens = 40;
    setting.vocab = 50;
    const Comparison both = compare(setting, cost, {cell.preparation(), &cell.prepared(), cell.draw_key(), 0});
    CHECK(both.run.end == plain.end);
    CHECK(both.plain.end == plain.end);
    CHECK(both.speedup() == 1.0);
  }
}

TEST_CASE("catching up costs time for the share that accepted everything") {
  // Only draft tokens cost: 1 us each. Every sequence that accepted all drafts in the round before adds one to the first pass.
  const AcceptedCounts accepted = simulated(0.9, 3, Bonus::emitted, 6, 60, 20260402);
  const auto expected_us = [&](bool with_catch_up) {
    std::vector<std::uint64_t> have(6, 0);
    double us = 6.0 * 100.0;  // prefill
    std::vector<bool> full(6, false);
    for (std::size_t r = 0; std::any_of(have.begin(), have.end(), [](std::uint64_t h) { return h < 60; }); ++r) {
      for (std::size_t i = 0; i < 6; ++i) {
        if (have[i] >= 60) continue;
        us += 3.0 + (with_catch_up && full[i] ? 1.0 : 0.0);
        const int a = accepted.of_sequence[i].at(r);
        have[i] += static_cast<std::uint64_t>(a) + 1;
        full[i] = a == 3;
      }
    }
    return us;
  };
  const Result result = simulate("{kind: serial}", LineCost({}, {0.0, 1.0}), accepted, 61);
  CHECK(result.end.seconds() * 1e6 == Approx(expected_us(true)).epsilon(1e-9));
  const Result mutant = simulate("{kind: serial}", LineCost({}, {0.0, 1.0}, 0.0, true), accepted, 61);
  CHECK(mutant.end.seconds() * 1e6 == Approx(expected_us(false)).epsilon(1e-9));
  CHECK(mutant.end < result.end);
}

TEST_CASE("contexts grow as tokens are emitted, and finished sequences leave or stay") {
  // Only cached tokens cost: .001 us each, for each verification.
  const AcceptedCounts accepted = simulated(0.6, 2, Bonus::emitted, 4, 50, 20260403);
  for (const bool shrink : {true, false}) {
    std::vector<std::uint64_t> have(4, 0);
    double us = 0.0;
    for (std::size_t r = 0; std::any_of(have.begin(), have.end(), [](std::uint64_t h) { return h < 50; }); ++r) {
      for (std::size_t i = 0; i < 4; ++i) {
        if (have[i] < 50 || !shrink) us += 0.001 * static_cast<double>(100 + have[i]);
        if (have[i] < 50) have[i] = std::min<std::uint64_t>(50, have[i] + accepted.of_sequence[i].at(r) + 1U);
      }
    }
    const Result result = simulate("{kind: serial}", LineCost({0.0, 0.0, 0.001}, {}), accepted, 51, shrink);
    CHECK(result.end.seconds() * 1e6 == Approx(us).epsilon(1e-7));
  }
}

TEST_CASE("two GPUs and a shared one: what is thrown away, what is waited for, to the picosecond") {
  // Accepted of 2, one sequence: all, none, all, all; then it ends, because the emitted tokens are 2, 1, 2, 2.
  AcceptedCounts accepted;
  accepted.draft_length = 2;
  accepted.bonus = Bonus::none;
  accepted.of_sequence = {{2, 0, 2, 2}};
  const auto us = [](Duration d) { return static_cast<double>(d.ps()) / 1e6; };
  {
    // A slow draft, 2 x 3 us, and a verification of 4: prefills 4 and 3 at once; draft 6, verify 4 and wait 2, verify 4, draft 6,
    // verify 4 and wait 2, verify 4.
    const Result r = simulate("{kind: two_gpus}", LineCost({4.0}, {3.0}), accepted, 8);
    CHECK(us(r.end) == 4 + 6 + 6 + 4 + 6 + 6 + 4);
    CHECK(us(r.parts.waiting) == 4);
    CHECK(us(r.parts.draft) == 12);
    CHECK(us(r.parts.verify) == 16);
    CHECK(us(r.wasted_ahead) == 4 + 4);      // after the rejection, and after the last round
    CHECK(us(r.wasted_draft) == 4 + 4 + 6);  // and the block that was rejected
    CHECK(us(r.draft_busy) == 3 + 6 + 6 + 4 + 6 + 6 + 4);
    CHECK(us(r.target_busy) == 4 + 16);
    CHECK((r.emitted == 8 && r.accepted == 6 && r.drafted == 8 && r.cut_tokens == 0));
  }
  {
    // A fast draft, 2 x 1 us, and a verification of 4.
    const Result r = simulate("{kind: two_gpus}", LineCost({4.0}, {1.0}), accepted, 8);
    CHECK(us(r.end) == 4 + 2 + 4 + 4 + 2 + 4 + 4);
    CHECK(us(r.parts.waiting) == 0);
    CHECK(us(r.wasted_ahead) == 2 + 2);
  }
  {
    // One GPU, both at half speed: verify 4 is done at 8, when the draft's second pass of 3 has 2 left, alone.
    const Result r = simulate("{kind: shared}", LineCost({4.0}, {3.0}), accepted, 8);
    CHECK(us(r.end) == 4 + 3 + 6 + (8 + 2) + (8 + 2 + 6) + (8 + 2) + 8);
    CHECK(us(r.wasted_ahead) == (8 + 2) + 8);  // on the wall
    CHECK(r.parts.waiting == Duration());
  }
  {
    // Shares of 3/4 and 1/2: 5/4 is more than the GPU. In proportion they get 3/5 and 2/5, so both run at 4/5 of their own speed.
    // The draft 2 x 1 is done at 2.5, when 2 of the verification's 4 are left.
    const Result r = simulate("{kind: shared, target_share: .75, draft_share: .5}", LineCost({4.0}, {1.0}), accepted, 8);
    CHECK(us(r.end) == Approx(4 + 1 + 2 + 4.5 + (4.5 + 2) + 4.5 + 4.5).epsilon(1e-6));
  }
  {
    // Two sequences; the second rejects at once, so it drafts again while the first waits.
    AcceptedCounts two = accepted;
    two.of_sequence = {{2, 2}, {0, 2, 2}};
    const Result r = simulate("{kind: two_gpus}", LineCost({4.0}, {1.0, 0.5}), two, 4);
    // Draft passes take 1 + .5 per sequence: a block of two 4, of one 3. Prefill 1 + .5 * 200, and 4. Round 1: verify 4, after
    // which 4; draft again for one sequence 3. Round 2: verify 4 (the first ends), all accepted: continue, 4; the second has 1 +
    // 2 = 3 = 4 - 1 tokens and ends as well.
    CHECK(us(r.end) == 101 + 4 + 4 + 3 + 4);
    CHECK(us(r.wasted_ahead) == 2 + 4);
  }
}

TEST_CASE("a round across a network, to the picosecond") {
  for (const bool probabilities : {false, true}) {
    const AcceptedCounts accepted = simulated(0.7, 4, Bonus::emitted, 3, 30, 20260404);
    const Result r = simulate(
        fmt::format("{{kind: network, latency_ms: .25, gbit_per_second: 8, send: {}}}", probabilities ? "probabilities" : "ids"),
        constant_cost(), accepted, 31, false);
    // 8 Gbit/s are 1000 ps per byte.
    theory::NetworkRound round{.sequences = 3,
                               .draft_length = 4,
                               .draft = 4 * 1.000001e-6,
                               .verify = 7.623456e-6,
                               .latency = 0.25e-3,
                               .bytes_per_second = 1e9,
                               .id_bytes = 4.0};
    CHECK(theory::network_bytes_up(round) == 48.0);
    if (probabilities) {
      round.vocab = 50.0;
      round.probability_bits = 16.0;
      CHECK(theory::network_bytes_up(round) == 48.0 + 1200.0);
    }
    const std::int64_t rounds = last_of(accepted, 30);
    const std::int64_t round_ps =
        4 * kDraftPs + kTargetPs + kRoundPs + 500'000'000 + (probabilities ? 1'248'000 : 48'000) + 24'000;
    CHECK(theory::network_round_seconds(round) == Approx(1e-12 * static_cast<double>(round_ps)).epsilon(1e-13));
    CHECK(r.end.ps() == kTargetPs + 250'000'000 + 12'000 + rounds * round_ps);
    CHECK(r.parts.network.ps() == 250'012'000 + rounds * (round_ps - 4 * kDraftPs - kTargetPs - kRoundPs));
  }
}

TEST_CASE("every placement: tokens are conserved, parts add up, runs repeat") {
  const LineCost cost({5.0, 0.01, 0.0001}, {1.0, 0.002, 0.00001}, 0.5);
  for (const std::string& kind : all_placements()) {
    for (const int draft_length : {1, 3, 8}) {
      for (const std::size_t sequences : {1, 4, 33}) {
        for (const bool shrink : {true, false}) {
          for (const std::uint64_t tokens : {1, 2, 3, 40}) {
            INFO(kind << " draft_length " << draft_length << " batch " << sequences << " tokens " << tokens);
            const AcceptedCounts accepted = counts_for(kind, 0.8, draft_length, sequences, tokens - 1, 20260405);
            const Result r = simulate(kind, cost, accepted, tokens, shrink);  // it checks parts and tokens
            CHECK(r.emitted == sequences * tokens);
            CHECK(r.parts.total() == r.end);
            // Tokens that rounds would have emitted without the cut, and the first tokens.
            if (accepted.draft_length > 0) {
              std::uint64_t whole = sequences;
              const auto rounds = rounds_of(accepted, tokens - 1);
              for (std::size_t i = 0; i < sequences; ++i)
                for (std::uint64_t n = 0; n < rounds[i]; ++n) whole += static_cast<std::uint64_t>(accepted.emitted(i, n));
              CHECK(whole == r.emitted + r.cut_tokens);
              CHECK(r.drafted == r.sequence_rounds * static_cast<std::uint64_t>(draft_length));
            }
            CHECK(r.wasted_draft <= r.draft_busy);
            const Result again = simulate(kind, cost, accepted, tokens, shrink);
            CHECK(again.fingerprint == r.fingerprint);
            CHECK(again.end == r.end);
          }
        }
      }
    }
  }
}

TEST_CASE("times a user sees: a burst counts once") {
  AcceptedCounts accepted;
  accepted.draft_length = 3;
  accepted.of_sequence = {{3, 3}, {0, 0, 0, 0, 3}};  // 8 tokens in 2 rounds, and in 5
  const Result r = simulate("{kind: serial}", LineCost({10.0}, {1.0}), accepted, 9);
  // First tokens at 10; the draft's prefill to 11; rounds of 13.
  CHECK(r.time_to_first_token.ps() == 10'000'000);
  CHECK(r.end.ps() == 76'000'000);
  CHECK(r.inter_token.p50 == Approx(13e-6));
  CHECK(r.inter_token.p99 == Approx(14e-6));  // the first of either
  CHECK(r.inter_token.mean == Approx((2 * 14 + 5 * 13) * 1e-6 / 7));
  CHECK(r.time_per_output_token.mean == Approx(0.5 * (27 + 66) * 1e-6 / 8));
  CHECK(r.time_per_output_token.p50 == Approx(27e-6 / 8));
  CHECK(r.time_per_output_token.p99 == Approx(66e-6 / 8));
}

TEST_CASE("jobs that cannot be") {
  const AcceptedCounts with_bonus = simulated(0.7, 3, Bonus::emitted, 1, 10, 1);
  CHECK_THROWS_AS(simulate("{kind: two_gpus}", constant_cost(), with_bonus, 5), InvariantBroken);
  CHECK_THROWS_AS(simulate("{kind: plain}", constant_cost(), with_bonus, 5), InvariantBroken);
  CHECK_THROWS_AS(simulate("{kind: serial}", constant_cost(), with_bonus, 500), InvariantBroken);  // more than was recorded
  CHECK_THROWS_AS(simulated(0.7, 0, Bonus::none, 1, 10, 1), InvariantBroken);
}

TEST_CASE("sequences end at their end token, the same under every placement") {
  const LineCost cost = constant_cost();
  const tests::ReadyCell cell(
      "{experiment: ends, pair: {vocab: 50, target: {family: zipf, exponent: 1}, draft: {from: target, transform: overlap, "
      "value: 0.7}}, decode: {drafter: {kind: chain, draft_length: 3}}}");
  for (const std::string& kind : all_placements()) {
    INFO(kind);
    PlacedBatch setting;
    setting.placement = tests::make_placement(kind);
    setting.batch = 9;
    setting.output_tokens = 40;
    setting.end_token_rate = 0.1;
    setting.vocab = 50;
    const std::vector<std::uint64_t> lengths = output_lengths(setting, cell.draw_key());
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    CHECK(longest > *std::min_element(lengths.begin(), lengths.end()));
    const Comparison both = compare(setting, cost, {cell.preparation(), &cell.prepared(), cell.draw_key(), 3});
    CHECK(both.plain.end.ps() == static_cast<std::int64_t>(longest) * kTargetPs);
    const std::uint64_t all = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
    CHECK(both.plain.emitted == all);
    CHECK(both.run.emitted == all);
    CHECK(both.plain.sequence_rounds == all - 9);
    CHECK(both.plain.time_per_output_token.mean == Approx(1e-12 * kTargetPs));
    setting.end_token_rate = 1.0;
    CHECK(compare(setting, cost, {cell.preparation(), &cell.prepared(), cell.draw_key(), 3}).run.emitted == 9);
  }
}

TEST_CASE("the latency of a block counts from where its text begins, whenever its passes run") {
  // Everything is accepted; a draft pass takes 1 ms per cached token, a verification 10 ms. Two at once halve the GPU, so the
  // second block's passes (at 102 and 103 tokens) overlap with 20 ms of verification, in which 10 ms of drafting are done.
  AcceptedCounts accepted;
  accepted.draft_length = 2;
  accepted.bonus = Bonus::none;
  accepted.of_sequence = {{2, 2, 2}};
  const LineCost cost({10000.0}, {0.0, 0.0, 1000.0});
  const auto blocks = [&](const std::string& kind) { return simulate(kind, cost, accepted, 5).end.seconds() * 1e3; };
  // Prefills: 10 and 0 ms. The first block takes 100 + 101, each next one starts two tokens further on; the last verification
  // runs next to drafting ahead that is never used.
  CHECK(blocks("{kind: two_gpus}") == Approx(10.0 + 201.0 + std::max(10.0, 205.0) + 10.0).epsilon(1e-9));
  CHECK(blocks("{kind: shared}") == Approx(10.0 + 201.0 + (20.0 + 195.0) + 20.0).epsilon(1e-9));
}

}  // namespace specsim::exact_times_test
