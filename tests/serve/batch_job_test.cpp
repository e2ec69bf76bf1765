// A job whose requests all come at the start: its makespan, its end, and that it is not called overload.
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>

namespace specsim::batch_job_test {

// Steps of 10 ms whatever is in them.
std::string job(int requests, int places, const std::string& output, const std::string& more = "") {
  return fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: {}, max_num_batched_tokens: 131072, async: false}}
  arrivals: {{process: batch, requests: {}}}
  lengths: {{prompt: 16, output: {}}}
{}cost: {{model: affine, target_fixed_ms: 10}}
)",
                     places, requests, output, more);
}

// Waves of equal requests: each takes `output` steps, and the next begins with the step after it.
double makespan_of_equal(int requests, int places, int output) {
  return 0.01 * output * std::ceil(static_cast<double>(requests) / places);
}

TEST_CASE("the makespan of equal requests is that of their waves", "[serve]") {
  for (const int requests : {1, 8, 20, 32, 33}) {
    const serve::Summary summary = tests::run_server(tests::server(job(requests, 8, "50"))).summary;
    CHECK(summary.duration_s == Approx(makespan_of_equal(requests, 8, 50)));
    CHECK(summary.completed == static_cast<std::size_t>(requests));
    CHECK_FALSE(summary.overloaded);
    CHECK(summary.output_throughput == Approx(requests * 50.0 / summary.duration_s));
    // Mutant: one wave for every request that is left over from full ones on.
    if (requests > 8) CHECK(summary.duration_s != Approx(makespan_of_equal(requests, 8, 50) + 0.5));
  }
}

TEST_CASE("several engines share a job", "[serve]") {
  const serve::Summary summary = tests::run_server(tests::server(job(32, 8, "50", "  replicas: {count: 2}\n"))).summary;
  CHECK(summary.duration_s == Approx(makespan_of_equal(16, 8, 50)));
}

constexpr const char* kOneLong = "{list: [10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 110]}";

TEST_CASE("the last tenth and the empty places of a job with a long request", "[serve]") {
  // Nineteen answers of 10 tokens and one of 110, all at once: .1 s with twenty in the batch, then 1 s with one. Nine tenths have
  // ended after .1 s. Of 20 places over 1.1 s, 19 are empty for 1 s. Mutant: the last request's own time.
  const serve::Summary summary = tests::run_server(tests::server(job(20, 64, kOneLong))).summary;
  CHECK(summary.duration_s == Approx(1.1));
  CHECK(summary.last_tenth_s == Approx(1.0));
  CHECK(summary.idle_places == Approx(1.0 - (20 * 0.1 + 1 * 1.0) / (20 * 1.1)));
}

TEST_CASE("other loads have no last tenth", "[serve]") {
  const serve::Summary summary = tests::run_server(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, async: false}
  arrivals: {process: deterministic, rate: 5, requests: 20}
  lengths: {prompt: 16, output: 10}
cost: {model: affine, target_fixed_ms: 10}
)"))
                                     .summary;
  CHECK(std::isnan(summary.last_tenth_s));
  CHECK(std::isnan(summary.idle_places));
}

}  // namespace specsim::batch_job_test
