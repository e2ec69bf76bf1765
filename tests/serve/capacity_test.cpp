// The saturated rate of a server whose steady state is known, counted from the time when the steady state is reached.
#include "sim/answers/load/capacity.h"
#include "tests/serve/servers.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

namespace specsim::capacity_test {

TEST_CASE("capacity is that of the steady state: the time in which the batch fills is left out", "[serve]") {
  // Every step takes 10 ms and has room for one whole prompt besides the others' tokens. 32 requests decode together, each for 40
  // steps: 32 / .4 s. At first they come in one by one, and the batch is half full for 32 steps of some 1,300: counted from the
  // start the rate is 1 % lower. Mutants: no warm-up; the end of the run, when the batch empties, counts too.
  const auto rate = [](int replicas) {
    return load::saturated_rate(tests::server(fmt::format(R"(serve:
  scheduler: {{kind: vllm_v1, max_num_seqs: 32, max_num_batched_tokens: 131, async: false}}
  arrivals: {{process: deterministic, rate: 1}}
  lengths: {{prompt: 100, output: 40}}
  replicas: {{count: {}}}
cost: {{model: affine, target_fixed_ms: 10}}
)",
                                                          replicas)),
                                nullptr)
        .value();
  };
  CHECK(rate(1) == Approx(80.0).epsilon(0.002));
  CHECK(rate(3) == Approx(240.0).epsilon(0.002));
  CHECK(rate(9) == Approx(720.0).epsilon(0.002));  // of which four represent all
}

TEST_CASE("capacity is that of the lengths' distribution, however few requests the run has", "[serve]") {
  // Outputs of 1 to 79 tokens, 40 in the mean: 80 requests per second again, with a standard error of .571 / sqrt(1,024) = 1.8 %.
  // Mutant: the run's single request, again and again.
  const double rate = load::saturated_rate(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 32, max_num_batched_tokens: 4096, async: false}
  arrivals: {process: poisson, rate: 1, requests: 1}
  lengths: {prompt: 16, output: {uniform: {from: 1, to: 79}}}
cost: {model: affine, target_fixed_ms: 10}
)"),
                                           nullptr)
                          .value();
  CHECK(rate == Approx(80.0).epsilon(0.08));
}

TEST_CASE("engines that are nearly idle get no extra requests", "[serve]") {
  // Two engines compute 131 tokens of prompts in each step of 10 ms: 262 requests per second of 100 tokens each, which leave 256
  // engines nearly idle. 256 x 1,024 requests are not needed for that: 100,000 of 39 steps each are 3.9 million. Mutant: 1,024
  // requests for each engine.
  std::size_t turns = 0;
  const double rate = load::saturated_rate(tests::server(R"(serve:
  scheduler: {kind: vllm_v1, max_num_seqs: 32, max_num_batched_tokens: 131, async: false}
  arrivals: {process: deterministic, rate: 1}
  lengths: {prompt: 100, output: 40}
  replicas: {count: 256, prefill: 2, kv_bytes_per_token: 1}
cost: {model: affine, target_fixed_ms: 10}
)"),
                                           nullptr, [&](double) { ++turns; })
                          .value();
  CHECK(rate == Approx(262.0).epsilon(0.002));
  CHECK(turns > 0);
  CHECK(turns * 4096 < 1'000'000);  // progress is reported once in 4,096 turns
}

}  // namespace specsim::capacity_test
