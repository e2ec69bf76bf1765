// The static batch of a server is the lockstep batch of a placement.
#include "tests/placement/batches.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace specsim::lockstep_test {

using namespace specsim::tests;

TEST_CASE("a static batch of plain decoding is a placement's, to the picosecond", "[serve]") {
  const std::vector<std::uint64_t> outputs = {7, 40, 23, 1, 12, 40};
  const LineCost cost({5886.37, 21.01, 0.03926}, {1000, 1, 0});
  placement::AcceptedCounts none;
  none.of_sequence.assign(outputs.size(), std::vector<std::uint8_t>(64, 0));
  placement::Generation generation;
  generation.cost = &cost;
  generation.accepted = &none;
  generation.prompt_tokens = 77;
  generation.output_tokens = outputs;
  const placement::Result expected = make_placement("{kind: plain}")->simulate(generation, nullptr);

  const load::ServeResult served = run_server(server(R"(serve:
  scheduler: {kind: static, batch: 6}
  arrivals: {process: closed, concurrency: 6, requests: 6}
  lengths: {prompt: 77, output: {list: [7, 40, 23, 1, 12, 40]}}
cost: {model: affine, target_fixed_ms: 5.88637, target_ms_per_token: 0.02101, target_ms_per_kv_token: 0.00003926}
)"));
  arrivals::Picoseconds end = 0;
  for (const serve::Sequence& sequence : served.result.sequences) {
    CHECK(sequence.first_token == expected.time_to_first_token.ps());
    end = std::max(end, sequence.last_token);
  }
  CHECK(end == expected.end.ps());
  CHECK(served.result.totals[0].busy == expected.target_busy.ps());
}

}  // namespace specsim::lockstep_test
