// A trace replayed: tokens per round are those of the record itself, whatever the draft length.
#include "sim/plan/acceptance_curve.h"
#include "tests/support/cells.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>

using namespace specsim;

namespace {

constexpr const char* kRecord = "tests/data/acceptance/trace_t1.jsonl";

std::string replay_of(int draft_length, const std::string& more) {
  return fmt::format(
      "{{experiment: record, seed: 11, rounds: 400000, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: uniform}}}}, "
      "context: {{process: trace, file: {}{}}}, decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}}}",
      kRecord, more, draft_length);
}

}  // namespace

TEST_CASE("a replayed trace has the record's own tokens per round") {
  // The curve of `specsim plan --trace`, a walk over the file that shares nothing with simulator or theory. Sequences of a fixed
  // number of rounds that start at requests' starts and run into the next request are off by .005 to .08 here.
  const plan::AcceptanceCurve record = plan::trace_acceptance(kRecord, 8);
  for (const int draft_length : {1, 2, 4, 8}) {
    const tests::ReadyCell ready(replay_of(draft_length, ""));
    const double expected = record.tokens_per_round.at(static_cast<std::size_t>(draft_length));
    const std::uint64_t work = ready.cell().work();
    const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), work);
    INFO("draft length " << draft_length);
    REQUIRE(prediction.known);
    CHECK(prediction.tokens_per_round == Approx(expected).epsilon(1e-12));
    const decode::Simulator simulator = ready.simulator();
    decode::Counts counts = simulator.empty_counts();
    for (std::uint64_t i = 0; i * simulator.chunk_size() < work; ++i) simulator.run(i, work, counts);
    const double simulated = static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds);
    CHECK(counts.cut_rounds == 0);
    CHECK(std::abs(simulated - expected) < 5.0 * prediction.tokens_per_round_error);
    CHECK(prediction.tokens_per_round_error < 0.004);  // small beside the bias that it must see
  }
}

TEST_CASE("a request ends its sequence: no other length may be asked of a trace, and no draft length beyond its requests") {
  CHECK_THROWS_AS(tests::experiment_of(replay_of(4, ", sequence_rounds: 16")), BadInput);
  CHECK_THROWS_AS(tests::experiment_of(replay_of(56, "")), BadInput);
  CHECK_NOTHROW(tests::experiment_of(replay_of(47, "")));
}
