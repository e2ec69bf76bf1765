// Timelines for trace_test.py, and the speed of writing a long one.
#include "tests/placement/batches.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>

namespace specsim::trace_test {

using namespace specsim::placement;
using decode::Bonus;
using specsim::tests::LineCost;
using specsim::tests::simulate;
using specsim::tests::simulated;

TEST_CASE("a traced placement", "[.trace]") {
  // Run by trace_test.py, which names the folder. Draft length 3; alone and in batches; slow and fast drafts.
  const char* const folder = std::getenv("SPECSIM_TRACES");
  REQUIRE(folder != nullptr);
  const char* const kinds[] = {"{kind: serial}", "{kind: shared}", "{kind: two_gpus}",
                               "{kind: network, latency_ms: .01, gbit_per_second: 1, send: probabilities}"};
  for (const char* kind : kinds) {
    const Bonus bonus = tests::make_placement(kind)->bonus();
    for (const std::size_t batch : {1, 5}) {
      for (const int draft_us : {1, 4}) {
        const std::string text(kind);
        const std::string name = text.substr(7, text.find_first_of(",}") - 7);
        engine::Timeline timeline(fmt::format("{}/{}_{}_{}.json", folder, name, batch, draft_us));
        const Result result = simulate(kind, LineCost({6.0}, {static_cast<double>(draft_us)}),
                                       simulated(0.7, 3, bonus, batch, 199, 20260430), 200, true, 100, 50, &timeline);
        timeline.span(timeline.lane("end"), "end", SimTime() + result.end, Duration());
        timeline.close();
      }
    }
  }
}

TEST_CASE("a trace of 100,000 rounds takes less than 5 s of processor time, the simulation included") {
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("specsim_trace_{}.json", getpid());
  constexpr std::uint64_t kTokens = 260'000;
  for (const char* kind : {"{kind: serial}", "{kind: two_gpus}"}) {
    const std::clock_t began = std::clock();  // processor time, since the machine may be busy with something else
    const AcceptedCounts accepted = simulated(0.7, 4, tests::make_placement(kind)->bonus(), 1, kTokens, 20260431);
    engine::Timeline timeline(file);
    const Result result = simulate(kind, LineCost({6.0}, {1.0}), accepted, kTokens + 1, true, 100, 50, &timeline);
    timeline.close();
    const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    const auto bytes = std::filesystem::file_size(file);
    std::filesystem::remove(file);
    CHECK(result.rounds > 90'000);
    CHECK(timeline.spans() >= 2 * result.rounds);
    const char* const sanitized = std::getenv("SPECSIM_SANITIZE");
    const double limit = sanitized != nullptr && *sanitized != '\0' ? 50.0 : 5.0;
    const double scaled = seconds * 1e5 / static_cast<double>(result.rounds);
    INFO(kind << ": " << result.rounds << " rounds, " << bytes << " bytes, " << seconds << " s");
    CHECK(scaled < limit);
    if (std::getenv("SPECSIM_SHOW") != nullptr) WARN(kind << ": " << scaled << " s for 100,000 rounds, " << bytes << " bytes");
  }
}

}  // namespace specsim::trace_test
