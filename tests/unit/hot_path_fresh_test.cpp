// Rounds in which every text position has its own distributions, compared with a plain loop that inverts the distribution
// function.
#include "tests/unit/plain_loop.h"

namespace specsim::hot_path_fresh_test {

using namespace specsim::tests;

TEST_CASE("fresh distributions: the loop equals a plain loop that inverts the distribution function", "[hot_path]") {
  for (const Decode& how : decodings()) {
    for (const int draft_length : {0, 1, 4}) {
      const std::string yaml = yaml_of(process_with("iid", "fresh: true"), how, draft_length);
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
        ++expected.groups;
        expected.part_rounds[sequence % decode::kParts] += share;
        expected.part_emitted[sequence % decode::kParts] += position;
        expected.part_longest[sequence % decode::kParts] += share + accepted - tries;
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
      // One round in kFreshJudged is located in the text, and each of its tokens once.
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

}  // namespace specsim::hot_path_fresh_test
