// Requests: each has its own parameters, and all emit equally many tokens.
#include "tests/unit/contexts.h"

#include <catch2/catch.hpp>

namespace specsim::contexts_requests_test {

using namespace specsim::tests;

TEST_CASE("requests: type frequencies by weight, the same type for the whole text", "[contexts][stat]") {
  // Detects weights that are not normalised, a type drawn per chunk, and a type that changes along the request.
  const std::shared_ptr<const families::ContextModel> owner =
      model("{process: requests, request_tokens: 30, types: [{weight: 2}, {weight: .5}, {}]}");
  const families::ContextModel& made = *owner;
  const families::ContextProcess& process = *made.process;
  const std::vector<double> share = {2.0 / 3.5, 0.5 / 3.5, 1.0 / 3.5};
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(process.shape().start[i] - share[i]) < 1e-15);
  std::vector<double> counts(3, 0.0);
  std::vector<double> neighbours(9, 0.0);
  std::vector<std::uint32_t> context(256);
  constexpr std::uint64_t kChunks = 200;
  for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    process.start(kKey, chunk * 256, 256, context.data());
    for (std::size_t i = 0; i < 256; ++i) {
      counts[context[i]] += 1.0;
      if (i % 2 == 1) neighbours[context[i - 1] * 3 + context[i]] += 1.0;
    }
  }
  const double n = 256.0 * kChunks;
  CHECK(chi_square_p(counts, {n * share[0], n * share[1], n * share[2]}) > kLevel);
  std::vector<double> expected(9);
  for (std::size_t i = 0; i < 9; ++i) expected[i] = n / 2.0 * share[i / 3] * share[i % 3];
  CHECK(chi_square_p(neighbours, expected) > kLevel);
}

namespace {

class RequestTexts final : public decode::RoundSink {
 public:
  void chunk(std::uint64_t) {
    close();
    length_.assign(decode::kLanes, 0);
    last_.assign(decode::kLanes, 0);
    context_.assign(decode::kLanes, ~0U);
  }
  void round(std::uint32_t lane, std::uint32_t, std::span<const Token> emitted, std::uint32_t next_context) override {
    if (context_[lane] != ~0U && context_[lane] != next_context) ++changed;
    context_[lane] = next_context;
    if (length_[lane] >= limit) ++late;
    length_[lane] += emitted.size();
    last_[lane] = emitted.size();
    all += emitted.size();
  }
  void close() {
    for (std::size_t i = 0; i < length_.size(); ++i) {
      if (length_[i] == 0) continue;
      ++texts;
      if (length_[i] < limit) ++unfinished;
      if (length_[i] > limit) {
        ++cut;
        cut_emitted += limit - (length_[i] - last_[i]);
        cut_whole += last_[i];
      }
    }
    length_.clear();
  }
  std::uint64_t limit = 0;
  std::uint64_t texts = 0;
  std::uint64_t unfinished = 0;
  std::uint64_t late = 0;  // rounds after the end
  std::uint64_t changed = 0;
  std::uint64_t cut = 0;
  std::uint64_t cut_emitted = 0;
  std::uint64_t cut_whole = 0;  // tokens of cut rounds, those beyond the end included
  std::uint64_t all = 0;

 private:
  std::vector<std::uint64_t> length_;
  std::vector<std::uint64_t> last_;
  std::vector<std::uint32_t> context_;
};

}  // namespace

TEST_CASE("requests: every request emits exactly request_tokens", "[contexts]") {
  for (const std::uint64_t tokens : {1ULL, 2ULL, 5ULL, 30ULL, 101ULL}) {
    for (const int draft_length : {0, 1, 4, 9}) {
      for (const std::uint64_t requests : {1ULL, 255ULL, 256ULL, 257ULL, 700ULL}) {
        const tests::ReadyCell ready(yaml_of(fmt::format("{{process: requests, request_tokens: {}, types: [{{weight: 2, draft: "
                                                         "{{from: target, transform: mix_noise, value: .2}}}}, {{}}]}}",
                                                         tokens),
                                             draft_length));
        RequestTexts sink;
        sink.limit = tokens;
        const decode::Counts counts = simulate(ready, requests, &sink);
        sink.close();
        INFO("tokens " << tokens << ", draft_length " << draft_length << ", requests " << requests);
        CHECK(counts.sequences == requests);
        CHECK(counts.emitted + counts.cut_emitted == requests * tokens);
        CHECK(sink.texts == requests);
        CHECK(sink.unfinished == 0);
        CHECK(sink.late == 0);
        CHECK(sink.changed == 0);
        CHECK(counts.cut_rounds == sink.cut);
        CHECK(counts.cut_emitted == sink.cut_emitted);
        CHECK(counts.cut_rounds <= requests);
        if (draft_length == 0) CHECK(counts.cut_rounds == 0);
        CHECK(std::accumulate(counts.accepted_distribution.begin(), counts.accepted_distribution.end(), std::uint64_t{0}) ==
              counts.rounds + counts.cut_rounds);
        CHECK(std::accumulate(counts.output.begin(), counts.output.end(), std::uint64_t{0}) == sink.all);
        CHECK(sink.all == counts.emitted + sink.cut_whole);
      }
    }
  }
}

TEST_CASE("requests: the number of requests follows from rounds", "[contexts]") {
  const auto work = [](std::uint64_t rounds, int tokens) {
    return tests::experiment_of(
               yaml_of(fmt::format("{{process: requests, request_tokens: {}, types: [{{}}]}}", tokens), 4, rounds))
        .cells.at(0)
        .work();
  };
  CHECK(work(1000, 100) == 256);
  CHECK(work(100000, 100) == 2000);
  CHECK(work(100001, 100) == 2001);
  CHECK(tests::experiment_of(yaml_of("{process: fixed}", 4, 12345)).cells.at(0).work() == 12345);
}

}  // namespace specsim::contexts_requests_test
