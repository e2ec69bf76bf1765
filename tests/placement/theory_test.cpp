// Placements compared with exact recursions over independent acceptance, statistically; and those recursions compared with
// enumeration.
#include "sim/rounds/theory/multi_draft.h"
#include "tests/placement/batches.h"
#include "tests/support/placement_theory.h"

#include <algorithm>
#include <array>

namespace specsim::theory_test {

using namespace specsim::placement;
using decode::Bonus;
using specsim::tests::LineCost;
using specsim::tests::part_of;
using specsim::tests::passes;
using specsim::tests::rejects;
using specsim::tests::simulate;
using specsim::tests::simulated;

namespace {

constexpr double kAlpha = 0.75;

// End times, in microseconds after the prefills, of every batch of `size` sequences.
template <class Figure>
std::vector<double> figures(const std::string& kind, const cost::CostModel& cost, const AcceptedCounts& all, std::size_t size,
                            std::uint64_t tokens, Figure figure) {
  std::vector<double> values;
  for (std::size_t first = 0; first + size <= all.of_sequence.size(); first += size)
    values.push_back(figure(simulate(kind, cost, part_of(all, first, size), tokens + 1)));
  return values;
}
double after_prefill(const Result& r) { return 1e6 * (r.end - r.parts.prefill).seconds(); }

}  // namespace

TEST_CASE("recursions agree with enumeration of every outcome") {
  constexpr int kLength = 2;
  for (const bool bonus : {true, false}) {
    for (const double alpha : {0.0, 0.3, 0.8, 1.0}) {
      const auto distribution = theory::truncated_geometric(alpha, kLength);
      const auto emitted = [&](int a) { return a + (a < kLength || bonus ? 1 : 0); };
      double mean = 0.0;
      for (int a = 0; a <= kLength; ++a) mean += distribution[static_cast<std::size_t>(a)] * emitted(a);
      CHECK(theory::tokens_per_round(alpha, kLength, bonus) == Approx(mean));
      // Two sequences, 5 tokens each, every pair of paths.
      std::array<double, 6> rounds{};  // P(rounds = r)
      const auto walk = [&](const auto& self, int left, int r, double p) -> void {
        if (left <= 0) {
          rounds[static_cast<std::size_t>(r)] += p;
          return;
        }
        for (int a = 0; a <= kLength; ++a) self(self, left - emitted(a), r + 1, p * distribution[static_cast<std::size_t>(a)]);
      };
      walk(walk, 5, 0, 1.0);
      double one = 0.0;
      double two = 0.0;
      for (int r = 0; r < 6; ++r) {
        one += r * rounds[static_cast<std::size_t>(r)];
        for (int s = 0; s < 6; ++s)
          two += std::max(r, s) * rounds[static_cast<std::size_t>(r)] * rounds[static_cast<std::size_t>(s)];
      }
      CHECK(theory::expected_rounds(alpha, kLength, bonus, 5) == Approx(one));
      CHECK(theory::expected_straggler_rounds(alpha, kLength, bonus, 5, 1) == Approx(one));
      CHECK(theory::expected_straggler_rounds(alpha, kLength, bonus, 5, 2) == Approx(two));
      double least = 0.0;
      double most = 0.0;
      for (int a = 0; a <= kLength; ++a)
        for (int b = 0; b <= kLength; ++b) {
          const double p = distribution[static_cast<std::size_t>(a)] * distribution[static_cast<std::size_t>(b)];
          least += p * std::min(a, b);
          most += p * std::max(a, b);
        }
      CHECK(theory::expected_minimum(distribution, 2) == Approx(least).margin(1e-15));
      CHECK(theory::expected_maximum(distribution, 2) == Approx(most).margin(1e-15));
    }
  }
  // The published instance: alpha .8, K 4, draft 1.5, verify 1.
  const theory::Overlap overlap = theory::overlapped_round(theory::chain_ends(0.8, 4), 1.5, 1.0, 1);
  CHECK(overlap.tokens == Approx(2.952));
  CHECK(overlap.round == Approx(2.0904));
  // Long texts have this rate of rounds.
  const double far = theory::overlapped_time(theory::chain_ends(0.8, 4), 1.5, 1.0, 4000) -
                     theory::overlapped_time(theory::chain_ends(0.8, 4), 1.5, 1.0, 2000);
  CHECK(far / 2000 == Approx(1.0 / overlap.rate()).epsilon(1e-9));
  CHECK(theory::shared_time(theory::chain_ends(1.0, 4), 4, 0.25, 1.0, 40) == Approx(10 * 2.0));
}

TEST_CASE("a batch in lockstep ends with its straggler") {
  const LineCost cost({4.0}, {1.0});
  constexpr int kLength = 3;
  constexpr int kSize = 8;
  const AcceptedCounts all = simulated(kAlpha, kLength, Bonus::emitted, 2000 * kSize, 40, 20260410);
  const double round = kLength * 1.0 + 4.0;
  const auto values = figures("{kind: serial}", cost, all, kSize, 40, after_prefill);
  passes("serial, batch of 8", values, round * theory::expected_straggler_rounds(kAlpha, kLength, true, 40, kSize));
  rejects("straggler ignored", values, round * theory::expected_rounds(kAlpha, kLength, true, 40));
  // A mutant of the batch itself: it ends with the first sequence.
  std::vector<double> first;
  for (std::size_t i = 0; i < all.of_sequence.size(); i += kSize) {
    const auto rounds = tests::rounds_of(part_of(all, i, kSize), 40);
    first.push_back(round * static_cast<double>(*std::min_element(rounds.begin(), rounds.end())));
  }
  rejects("ends with the first", first, round * theory::expected_straggler_rounds(kAlpha, kLength, true, 40, kSize));

  const AcceptedCounts alone = part_of(all, 0, 4000);
  const auto one = figures("{kind: serial}", cost, alone, 1, 40, after_prefill);
  passes("serial, one sequence", one, round * theory::expected_rounds(kAlpha, kLength, true, 40));
  rejects("last round not cut: tokens over tokens per round", one,
          round * 40.0 / theory::tokens_per_round(kAlpha, kLength, true));

  // The slowest and the fastest of two sequences, in their first round.
  std::vector<double> least;
  std::vector<double> most;
  for (std::size_t i = 0; i < all.of_sequence.size(); i += 2) {
    const auto [low, high] = std::minmax(all.of_sequence[i][0], all.of_sequence[i + 1][0]);
    least.push_back(low);
    most.push_back(high);
  }
  const auto distribution = theory::truncated_geometric(kAlpha, kLength);
  passes("least accepted of two", least, theory::expected_minimum(distribution, 2));
  passes("most accepted of two", most, theory::expected_maximum(distribution, 2));
  rejects("one sequence's mean for the least", least, theory::expected_minimum(distribution, 1));
  rejects("one sequence's mean for the most", most, theory::expected_maximum(distribution, 1));
}

TEST_CASE("overlapped on two GPUs") {
  constexpr int kLength = 3;
  const AcceptedCounts all = simulated(kAlpha, kLength, Bonus::none, 8000, 60, 20260411);
  AcceptedCounts keeps_bonus = simulated(kAlpha, kLength, Bonus::emitted, 8000, 60, 20260411);
  for (auto& own : keeps_bonus.of_sequence) own.resize(60, 0);  // fewer rounds do, which the overlapped loop must not notice
  for (const double pass : {1.0, 3.0}) {
    const LineCost cost({6.0}, {pass});
    const double draft = kLength * pass;
    const auto end = [&](const Result& r) { return after_prefill(r) - draft; };  // from the first verification on
    const double claim = theory::overlapped_time(theory::chain_ends(kAlpha, kLength), draft, 6.0, 60);
    const auto values = figures("{kind: two_gpus}", cost, all, 1, 60, end);
    passes("two GPUs, one sequence", values, claim);
    // Mutants. A round that takes the longer of the two times, whatever was rejected:
    rejects("waste not charged", values, 60.0 / theory::tokens_per_round(kAlpha, kLength, false) * std::max(draft, 6.0));
    // A mutant whose full rounds emit a bonus token:
    std::vector<double> mutant;
    for (const auto& own : keeps_bonus.of_sequence) {
      double time = 0.0;
      int left = 60;
      for (std::size_t r = 0; left > 0; ++r) {
        left -= own[r] + 1;
        time += left <= 0 ? 6.0 : own[r] == kLength ? std::max(draft, 6.0) : draft + 6.0;
      }
      mutant.push_back(time);
    }
    rejects("bonus token kept in overlap", mutant, claim);
    // A mutant that drafts in turn:
    rejects("not overlapped", figures("{kind: serial}", cost, all, 1, 60, end), claim);
  }
  // A batch of four. All its rounds are equal until the first sequence ends. So every sequence goes through 100 simulated rounds
  // and then rejects all drafts until the longest has one more token. These rounds have a known time, verify + draft, the last
  // one verify.
  constexpr std::size_t kRounds = 100;
  const AcceptedCounts batches = simulated(kAlpha, kLength, Bonus::none, 4 * 400, kLength * kRounds, 20260412);
  for (const double pass : {1.0, 3.0}) {
    const LineCost cost({6.0}, {pass});
    const double draft = kLength * pass;
    std::vector<double> round;
    std::vector<double> vain;
    for (std::size_t first = 0; first < batches.of_sequence.size(); first += 4) {
      AcceptedCounts part = part_of(batches, first, 4);
      std::array<std::uint64_t, 4> have{};
      for (std::size_t i = 0; i < 4; ++i) {
        part.of_sequence[i].resize(kRounds);
        for (std::size_t n = 0; n < kRounds; ++n) have[i] += static_cast<std::uint64_t>(part.emitted(i, n));
      }
      const std::uint64_t tokens = *std::max_element(have.begin(), have.end()) + 1;
      const std::uint64_t more = tokens - *std::min_element(have.begin(), have.end());
      for (std::size_t i = 0; i < 4; ++i) part.of_sequence[i].resize(kRounds + tokens - have[i], 0);
      const Result r = simulate("{kind: two_gpus}", cost, part, tokens + 1);
      REQUIRE(r.rounds == kRounds + more);
      const auto known = static_cast<double>(more);
      round.push_back((after_prefill(r) - known * (draft + 6.0)) / kRounds);
      vain.push_back((1e6 * r.wasted_ahead.seconds() - known * std::min(draft, 6.0)) / kRounds);
    }
    const theory::Overlap theory = theory::overlapped_round(theory::chain_ends(kAlpha, kLength), draft, 6.0, 4);
    passes("two GPUs, a batch of four: a round", round, theory.round);
    passes("two GPUs, a batch of four: drafted in vain", vain, theory.wasted_ahead);
    const theory::Overlap alone = theory::overlapped_round(theory::chain_ends(kAlpha, kLength), draft, 6.0, 1);
    rejects("whoever rejects does not hold the others up", round, alone.round);
    if (pass == 3.0) rejects("the others' block is broken off as well", vain, alone.wasted_ahead);
  }
}

TEST_CASE("overlapped on one shared GPU") {
  constexpr int kLength = 3;
  const AcceptedCounts all = simulated(kAlpha, kLength, Bonus::none, 4000, 60, 20260413);
  for (const double pass : {1.0, 4.0}) {
    const auto end = [&](const Result& r) { return after_prefill(r) - kLength * pass; };
    const auto values = figures("{kind: shared}", LineCost({6.0}, {pass}), all, 1, 60, end);
    const std::vector<theory::RoundEnd> ends = theory::chain_ends(kAlpha, kLength);
    passes("one GPU shared", values, theory::shared_time(ends, kLength, pass, 6.0, 60));
    rejects("two GPUs' time", values, theory::overlapped_time(ends, kLength * pass, 6.0, 60));
  }
}

TEST_CASE("trees drafted ahead, on two GPUs and on a shared one") {
  // Two siblings and a child of each. The first sibling is accepted with `first`, else the second with `second`; the child of
  // either is accepted as the first sibling is. The guess is the first sibling with its child, and after the second sibling the
  // target's own token follows.
  const tests::ReadyCell cell(
      "{experiment: trees, seed: 20260432, pair: {vocab: 4, target: {family: explicit, probabilities: [.4, .3, .2, .1]}, draft: "
      "{family: explicit, probabilities: [.2, .2, .2, .4]}}, decode: {drafter: {kind: tree_static, branching: [2, 1]}, verifier: "
      "multi_draft_recursive}}");
  const std::array target = {0.4, 0.3, 0.2, 0.1};
  const std::array draft = {0.2, 0.2, 0.2, 0.4};
  const auto by_rank = theory::judge_recursive(target, draft, 2).by_rank;
  const double first = by_rank[0];
  const double second = by_rank[1];
  REQUIRE(first == Approx(0.7));
  const auto ends_of = [&](int emitted, bool guessed) {
    return std::vector<theory::RoundEnd>{{first * first, 2, true},
                                         {first * (1.0 - first) + second * (1.0 - first), 2, false},
                                         {second * first, emitted, guessed},
                                         {1.0 - first - second, 1, false}};
  };
  const std::vector<theory::RoundEnd> ends = ends_of(3, false);
  const LineCost cost({6.0}, {4.0});
  constexpr std::size_t kSequences = 8000;
  const AcceptedCounts all =
      record_accepted({cell.preparation(), &cell.prepared(), cell.draw_key(), 2}, Bonus::none, kSequences, 60);
  const auto ends_at = [&](const std::string& kind) {
    const auto placement = tests::make_placement(kind);
    std::vector<double> values;
    for (std::size_t i = 0; i < kSequences; ++i) {
      AcceptedCounts one = part_of(all, i, 1);
      one.whole = {all.whole[i]};
      one.ahead = {all.ahead[i]};
      Generation generation;
      generation.cost = &cost;
      generation.accepted = &one;
      generation.drafting = std::cref(*std::get<decode::BlockJudging>(cell.preparation().judging).drafter);
      generation.prompt_tokens = 100;
      generation.output_tokens = {61};
      generation.vocab = 4;
      values.push_back(after_prefill(placement->simulate(generation, nullptr)) - 8.0);
    }
    return values;
  };
  const auto two = ends_at("{kind: two_gpus}");
  passes("two GPUs, a tree", two, theory::overlapped_time(ends, 8.0, 6.0, 60));
  rejects("no token of the target's after any leaf", two, theory::overlapped_time(ends_of(2, false), 8.0, 6.0, 60));
  rejects("the block after any leaf is there", two, theory::overlapped_time(ends_of(3, true), 8.0, 6.0, 60));
  const auto one = ends_at("{kind: shared}");
  passes("one GPU shared, a tree", one, theory::shared_time(ends, 2, 4.0, 6.0, 60));
  rejects("no token of the target's after any leaf, shared", one, theory::shared_time(ends_of(2, false), 2, 4.0, 6.0, 60));
}

TEST_CASE("across a network") {
  constexpr int kLength = 4;
  const AcceptedCounts all = simulated(kAlpha, kLength, Bonus::emitted, 6000, 50, 20260414);
  theory::NetworkRound round{.sequences = 2,
                             .draft_length = kLength,
                             .draft = 4e-6,
                             .verify = 6e-6,
                             .latency = 20e-6,
                             .bytes_per_second = 1.25e8,
                             .id_bytes = 4.0,
                             .vocab = 50.0,
                             .probability_bits = 16.0};
  const auto values = figures("{kind: network, latency_ms: .02, gbit_per_second: 1, send: probabilities}", LineCost({6.0}, {1.0}),
                              all, 2, 50, [](const Result& r) { return (r.end - r.parts.prefill).seconds(); });
  const double first_token = round.latency + 8.0 / round.bytes_per_second;
  const double rounds = theory::expected_straggler_rounds(kAlpha, kLength, true, 50, 2);
  // Rounds of one sequence are shorter by the bytes of a sequence; both sequences exist for min(R1, R2) = R1 + R2 - max.
  const double both = 2.0 * theory::expected_rounds(kAlpha, kLength, true, 50) - rounds;
  theory::NetworkRound single = round;
  single.sequences = 1;
  const double claim =
      first_token + both * theory::network_round_seconds(round) + (rounds - both) * theory::network_round_seconds(single);
  passes("network, batch of 2", values, claim);
  round.vocab = 0.0;
  single.vocab = 0.0;
  rejects("probabilities not sent", values,
          first_token + both * theory::network_round_seconds(round) + (rounds - both) * theory::network_round_seconds(single));
}

TEST_CASE("output lengths are geometric up to the most allowed") {
  const double rate = 0.02;
  PlacedBatch setting;
  setting.batch = 200000;
  setting.output_tokens = 100;
  setting.end_token_rate = rate;
  std::vector<double> lengths;
  for (const std::uint64_t length : output_lengths(setting, rng::make_key(20260409, 1)))
    lengths.push_back(static_cast<double>(length));
  CHECK(*std::min_element(lengths.begin(), lengths.end()) == 1.0);
  CHECK(*std::max_element(lengths.begin(), lengths.end()) == 100.0);
  const double mean = (1.0 - std::pow(1.0 - rate, 100.0)) / rate;
  passes("output length", lengths, mean);
  for (double& length : lengths) length = std::min(length + 1.0, 100.0);
  rejects("the first token never ends", lengths, mean);
}

}  // namespace specsim::theory_test
