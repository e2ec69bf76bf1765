// A replayed trace: tokens per round are those of the record itself, whatever the draft length and the other settings.
#include "sim/answers/plan/acceptance_curve.h"
#include "tests/support/cells.h"
#include "tests/support/temporary_file.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

namespace specsim::record_test {

using specsim::tests::TemporaryFile;

namespace {

constexpr const char* kRecord = "tests/data/acceptance/trace_t1.jsonl";

std::string replay_of(const std::string& file, int draft_length, const std::string& more) {
  return fmt::format(
      "{{experiment: record, seed: 11, rounds: 400000, pair: {{vocab: 2, target: {{family: uniform}}, draft: {{family: "
      "uniform}}}}, "
      "context: {{process: trace, file: {}{}}}, decode: {{drafter: {{kind: chain, draft_length: {}}}, verifier: token}}}}",
      file, more, draft_length);
}

// The overlaps of each request, read without the program's code.
std::vector<std::vector<double>> overlaps_of(const std::string& file) {
  std::vector<std::vector<double>> requests;
  const std::string text = read_whole_file(file);
  for (std::size_t at = 0; (at = text.find("\"overlap\": [", at)) != std::string::npos;) {
    requests.emplace_back();
    for (at += 12; text[at - 1] != ']';) {
      std::size_t used = 0;
      requests.back().push_back(std::stod(text.substr(at, 24), &used));
      for (at += used; text[at] == ',' || text[at] == ' ' || text[at] == ']';)
        if (text[at++] == ']') break;
    }
  }
  return requests;
}

struct Replay {
  double rounds = 0.0;
  double emitted = 0.0;
  [[nodiscard]] double tokens_per_round() const { return emitted / rounds; }
};

// Which rounds of a request count.
enum class Ends {
  before_a_cut,  // rounds that begin where no outcome would pass the end
  uncut,         // rounds that do not pass the end: long ones there are left out
};

// Forwards over each request: the probability that a round begins at each position.
Replay replay(const std::vector<std::vector<double>>& requests, std::size_t draft_length, Ends ends) {
  Replay all;
  for (const std::vector<double>& overlap : requests) {
    const std::size_t size = overlap.size();
    std::vector<double> begins(size + draft_length + 2, 0.0);
    begins[0] = 1.0;
    for (std::size_t at = 0; at < size; ++at) {
      if (ends == Ends::before_a_cut && at + draft_length >= size) break;
      double reached = begins[at];
      for (std::size_t j = 0; j <= draft_length && at + j < size; ++j) {
        const double stops = j < draft_length ? reached * (1.0 - overlap[at + j]) : reached;
        all.rounds += stops;
        all.emitted += stops * static_cast<double>(j + 1);
        begins[at + j + 1] += stops;
        reached -= stops;
      }
    }
  }
  return all;
}

// The mutant: rounds from the start of a request that run on into the next one; each start is equally likely.
double fixed_rounds(const std::vector<std::vector<double>>& requests, std::size_t draft_length, int rounds) {
  std::vector<double> text;
  std::vector<std::size_t> starts;
  for (const std::vector<double>& overlap : requests) {
    starts.push_back(text.size());
    text.insert(text.end(), overlap.begin(), overlap.end());
  }
  std::vector<double> here(text.size(), 0.0);
  for (const std::size_t start : starts) here[start] = 1.0 / static_cast<double>(starts.size());
  double emitted = 0.0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> next(text.size(), 0.0);
    for (std::size_t at = 0; at < text.size(); ++at) {
      double reached = here[at];
      for (std::size_t j = 0; j <= draft_length; ++j) {
        const double stops = j < draft_length ? reached * (1.0 - text[(at + j) % text.size()]) : reached;
        emitted += stops * static_cast<double>(j + 1);
        next[(at + j + 1) % text.size()] += stops;
        reached -= stops;
      }
    }
    here = std::move(next);
  }
  return emitted / rounds;
}

struct Simulated {
  double tokens_per_round = 0.0;
  double standard_error = 0.0;  // by theory
  double predicted = 0.0;
  std::uint64_t cut = 0;
};

Simulated simulate(const std::string& yaml) {
  const tests::ReadyCell ready(yaml);
  const std::uint64_t work = ready.cell().work();
  const judge::Prediction prediction = judge::predict_exact(ready.cell(), ready.facts(), work);
  REQUIRE(prediction.known);
  const decode::Simulator simulator = ready.simulator();
  decode::Counts counts = simulator.empty_counts();
  for (std::uint64_t i = 0; i * simulator.chunk_size() < work; ++i) simulator.run(i, work, counts);
  return {static_cast<double>(counts.emitted) / static_cast<double>(counts.rounds), prediction.tokens_per_round_error,
          prediction.tokens_per_round, counts.cut_rounds};
}

}  // namespace

TEST_CASE("a replayed trace has the record's own tokens per round") {
  const std::vector<std::vector<double>> record = overlaps_of(kRecord);
  REQUIRE(record.size() == 100);
  REQUIRE(record[0].size() == 48);
  const plan::AcceptanceCurve curve = plan::trace_acceptance(kRecord, 8);  // what `specsim plan --trace` reads
  for (std::size_t draft_length = 1; draft_length <= 8; ++draft_length) {
    const double expected = replay(record, draft_length, Ends::before_a_cut).tokens_per_round();
    const Simulated own = simulate(replay_of(kRecord, static_cast<int>(draft_length), ""));
    INFO("draft length " << draft_length);
    CHECK(own.predicted == Approx(expected).epsilon(1e-12));
    CHECK(curve.tokens_per_round.at(draft_length) == Approx(expected).epsilon(1e-12));
    CHECK(own.cut == 0);
    const auto rejected = [&](double tokens_per_round) {
      return std::abs(tokens_per_round - expected) > 5.0 * own.standard_error;
    };
    CHECK_FALSE(rejected(own.tokens_per_round));
    // Mutants that the same check must reject: starts of requests with too much weight, and long rounds left out at the ends.
    CHECK(rejected(fixed_rounds(record, draft_length, 2)));
    CHECK(rejected(replay(record, draft_length, Ends::uncut).tokens_per_round()));
  }
}

TEST_CASE("the number of rounds that is asked for does not move a replayed trace") {
  const double expected = replay(overlaps_of(kRecord), 4, Ends::before_a_cut).tokens_per_round();
  for (const char* const rounds : {"rounds: 1000,", "rounds: 30000,", "rounds: 1000000,"}) {
    std::string yaml = replay_of(kRecord, 4, "");
    yaml.replace(yaml.find("rounds: 400000,"), std::string("rounds: 400000,").size(), rounds);
    const Simulated own = simulate(yaml);
    CHECK(own.predicted == Approx(expected).epsilon(1e-12));
    CHECK(std::abs(own.tokens_per_round - expected) < 5.0 * own.standard_error);
  }
}

TEST_CASE("requests that are shorter than a round give none, and the user is warned") {
  const TemporaryFile file(
      "{\"overlap\": [0.5, 0.25]}\n{\"overlap\": [1, 1, 1]}\n{\"overlap\": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]}\n");
  const spec::Experiment short_ones = tests::experiment_of(replay_of(file.path(), 3, ""));
  REQUIRE(short_ones.cells[0].notes.size() == 1);
  CHECK(
      short_ones.cells[0].notes[0] ==
      "2 of the record's 3 requests have fewer than the 4 tokens that a round may emit, and yield no round: tokens per round are "
      "those of the longer requests");
  const Simulated own = simulate(replay_of(file.path(), 3, ""));
  const double expected = 1.0 + 0.5 + 0.25 + 0.125;  // the third request alone
  CHECK(own.predicted == Approx(expected).epsilon(1e-12));
  CHECK(std::abs(own.tokens_per_round - expected) < 5.0 * own.standard_error);
  CHECK(tests::experiment_of(replay_of(file.path(), 1, "")).cells[0].notes.empty());
  CHECK_NOTHROW(tests::experiment_of(replay_of(file.path(), 7, "")));
  CHECK_THROWS_WITH(
      tests::experiment_of(replay_of(file.path(), 8, "")),
      Catch::Contains("draft_length is 8 with a record whose longest request has 8 tokens, allowed: less than that"));
}

TEST_CASE("only a request's end ends its sequence") {
  CHECK_THROWS_WITH(tests::experiment_of(replay_of(kRecord, 4, ", sequence_rounds: 16")),
                    Catch::Contains("sequence_rounds is given with context process trace, allowed: the end of each request"));
}

}  // namespace specsim::record_test
