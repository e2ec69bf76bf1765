// The counts that placements get: the exact simulator's own, with and without a bonus token.
#include "tests/placement/batches.h"

#include <algorithm>
#include <array>
#include <map>

namespace specsim::accepted_test {

using namespace specsim::placement;
using decode::Bonus;
using specsim::tests::ReadyCell;

namespace {

class Rounds final : public decode::RoundSink {
 public:
  void accepted(std::uint32_t lane, std::uint32_t, std::uint32_t drafts) override { counts[lane].push_back(drafts); }
  void round(std::uint32_t lane, std::uint32_t, std::span<const Token> text, std::uint32_t) override {
    emitted[lane].push_back(text.size());
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> counts;
  std::map<std::uint32_t, std::vector<std::size_t>> emitted;
};

const char* const kHead =
    "{experiment: accepted, seed: 20260420, rounds: 8000, pair: {vocab: 40, target: {family: zipf, exponent: 1}, ";

RoundSource source_of(const ReadyCell& cell) {
  return {cell.preparation(), &cell.prepared(), cell.draw_key(), cell.cell().draft_length()};
}

}  // namespace

TEST_CASE("recorded counts are those of the long run") {
  const std::vector<std::string> contexts = {"", "context: {process: iid, pool: 16}, ", "context: {process: iid, fresh: true}, "};
  for (const std::string& context : contexts) {
    const ReadyCell cell(std::string(kHead) + "draft: {from: target, transform: overlap, value: .7, shape: temperature}}, " +
                         context + "decode: {drafter: {kind: chain, draft_length: 3}}}");
    const std::size_t sequences = context.find("fresh") != std::string::npos ? 3 : 300;  // more than one chunk
    const AcceptedCounts counts = record_accepted(source_of(cell), Bonus::emitted, sequences, 50);
    REQUIRE(counts.of_sequence.size() == sequences);
    const decode::Simulator simulator(cell.preparation(), cell.prepared(), cell.draw_key(), 3, 50);
    const std::size_t lanes = simulator.chunk_size() / 50;
    for (const std::size_t chunk : {std::size_t{0}, (sequences - 1) / lanes}) {
      Rounds rounds;
      decode::Counts unused = simulator.empty_counts();
      simulator.run(chunk, sequences * 50, unused, &rounds);
      for (const auto& [lane, own] : rounds.counts) {
        const auto& recorded = counts.of_sequence.at(chunk * lanes + lane);
        REQUIRE(recorded.size() <= own.size());
        CHECK(std::equal(recorded.begin(), recorded.end(), own.begin()));
        // No more rounds than the text needs.
        std::uint64_t tokens = 0;
        for (const std::uint8_t a : recorded) tokens += a + 1U;
        CHECK(tokens >= 50);
        CHECK(tokens - recorded.back() - 1U < 50);
      }
    }
  }
}

TEST_CASE("without a bonus token the text stands still after full acceptance") {
  // Positions alternate: a certain acceptance, a certain rejection. One draft a round. With the bonus token, which takes the bad
  // position, every round accepts; without it every other one does.
  const ReadyCell cell(std::string(kHead) +
                       "draft: {from: target, transform: temperature, value: 1}}, "
                       "context: {process: regimes, start: [1, 0], transition: [[0, 1], [1, 0]], states: ["
                       "{target: {family: one_hot, token: 3}, draft: {family: one_hot, token: 3}}, "
                       "{target: {family: one_hot, token: 3}, draft: {family: one_hot, token: 4}}]}, "
                       "decode: {drafter: {kind: chain, draft_length: 1}}}");
  const AcceptedCounts with = record_accepted(source_of(cell), Bonus::emitted, 2, 20);
  const AcceptedCounts without = record_accepted(source_of(cell), Bonus::none, 2, 20);
  for (int i = 0; i < 2; ++i) {
    CHECK(with.of_sequence[static_cast<std::size_t>(i)] == std::vector<std::uint8_t>(10, 1));
    std::vector<std::uint8_t> turns;
    for (int n = 0; n < 20; ++n) turns.push_back(n % 2 == 0 ? 1 : 0);
    CHECK(without.of_sequence[static_cast<std::size_t>(i)] == turns);
  }
}

TEST_CASE("what a round emits without a bonus token, prepared and fresh") {
  for (const std::string context : {"", "context: {process: iid, fresh: true}, "}) {
    const ReadyCell cell(std::string(kHead) + "draft: {from: target, transform: overlap, value: .8, shape: temperature}}, " +
                         context + "decode: {drafter: {kind: chain, draft_length: 2}}}");
    const decode::Simulator simulator(cell.preparation(), cell.prepared(), cell.draw_key(), 2, 200, Bonus::none);
    Rounds rounds;
    decode::Counts counts = simulator.empty_counts();
    simulator.run(0, 200, counts, &rounds);
    std::array<std::uint64_t, 3> distribution{};
    std::uint64_t tokens = 0;
    for (std::size_t r = 0; r < 200; ++r) {
      const std::uint32_t a = rounds.counts[0][r];
      CHECK(rounds.emitted[0][r] == (a < 2 ? a + 1 : 2));
      ++distribution[a];
      tokens += rounds.emitted[0][r];
    }
    CHECK(counts.accepted_distribution == std::vector<std::uint64_t>(distribution.begin(), distribution.end()));
    CHECK(counts.emitted == tokens);
    CHECK(distribution[2] > 50);
    // A run without a progress callback counts the same.
    decode::Counts again = simulator.empty_counts();
    simulator.run(0, 200, again);
    CHECK(again == counts);
  }
}

}  // namespace specsim::accepted_test
